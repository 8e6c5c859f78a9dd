"""Cached answers over HTTP: which requests have them, and what they look like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import httpx
import numpy as np
import orjson
import pytest

from headroom_server.caching.generation_cache import GenerationCache
from headroom_server.caching.levels import LevelOptions
from headroom_server.caching.semantic import SemanticAnswers, SemanticBounds
from headroom_server.generation.values import GenerationRequest, Sampling
from headroom_server.openai_api.answers.cached import question_of
from headroom_server.openai_api.bodies.parsing import parse_chat
from headroom_server.telemetry.accounting import Outcome
from support.generation_front import content, events, front


def cache() -> GenerationCache:
    return GenerationCache(LevelOptions(1 << 20, 60.0, lambda: 0.0))


def similar_cache(embed: Callable[[str], Sequence[float]]) -> GenerationCache:
    async def embedded(text: str, _tenant: str) -> Sequence[float]:
        return embed(text)

    answers = SemanticAnswers(SemanticBounds(0.9, 100, 60.0, 1 << 20))
    return GenerationCache(LevelOptions(1 << 20, 60.0, lambda: 0.0), similar=(answers, embedded))


def by_first_word(text: str) -> Sequence[float]:
    """Texts with one first word are similar: cosine 0.98."""
    seed = sum(text.split(maxsplit=1)[0].encode())
    vector = np.random.default_rng(seed).standard_normal(64)
    rest = np.random.default_rng(len(text) + seed).standard_normal(64)
    found: list[float] = (vector + 0.1 * rest).tolist()
    return found


def source(answer: httpx.Response) -> str | None:
    assert answer.status_code == 200, answer.text
    found: str | None = answer.headers.get("x-headroom-cache")
    return found


def text(answer: httpx.Response) -> str:
    found: str = answer.json()["choices"][0]["text"]
    return found


async def test_an_equal_greedy_request_is_answered_without_the_engine() -> None:
    async with front(cache=cache()) as here:
        first = await here.complete(temperature=0)
        here.executor.executed.clear()
        second = await here.complete(temperature=0)

        assert (source(first), source(second)) == (None, "memory")
        assert second.json()["choices"] == first.json()["choices"]
        assert second.json()["usage"] == first.json()["usage"]
        assert here.executor.executed == []
        assert here.generator.ledger.outcomes[Outcome.OK] == 2
        metrics = (await here.http.get("/metrics")).text
        assert 'headroom_cache_hits_total{model="m",level="memory"} 1' in metrics


async def test_streams_chats_logprobs_and_stop_strings_are_replayed() -> None:
    async with front(cache=cache()) as here:
        for body in ({}, {"logprobs": 1}, {"stop": "ll"}, {"n": 2}, {"stop": "l", "n": 2}):
            whole = await here.complete(temperature=0, **body)
            again = await here.complete(temperature=0, **body)
            assert source(again) == "memory"
            assert again.json()["choices"] == whole.json()["choices"]
        stream = await here.complete(temperature=0, stream=True)
        assert source(stream) == "memory"
        assert "".join(one["choices"][0]["text"] for one in events(stream)) == "hello"
        await here.chat(temperature=0)
        chat = await here.chat(temperature=0, stream=True)
        assert source(chat) == "memory"
        assert content(events(chat)) == "hello"


async def test_a_stream_that_was_generated_answers_whole_requests() -> None:
    async with front(cache=cache()) as here:
        await here.complete(temperature=0, stream=True)
        answer = await here.complete(temperature=0)

        assert source(answer) == "memory"
        assert text(answer) == "hello"


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        pytest.param({"temperature": 0.5}, {}, id="sampled"),
        pytest.param({}, {}, id="sampled by default"),
        pytest.param({"temperature": 0}, {"cache-control": "no-store"}, id="marked personal"),
        pytest.param({"temperature": 0}, {"cache-control": "no-cache"}, id="must be fresh"),
        pytest.param({"temperature": 0}, {"cache-control": "private, No-Store"}, id="any case"),
    ],
)
async def test_requests_whose_answers_must_not_be_repeated(
    body: dict[str, Any], headers: dict[str, str]
) -> None:
    async with front(cache=cache()) as here:
        asked = orjson.dumps({"model": "m", "prompt": "abc", **body})
        for _ in range(2):
            answer = await here.http.post("/v1/completions", content=asked, headers=headers)
            assert source(answer) is None
        counts = here.generator.cache.counts() if here.generator.cache else None
        assert counts is not None
        assert counts.levels.entries == 0


async def test_tenants_share_no_answers() -> None:
    async with front(cache=cache()) as here:
        asked = orjson.dumps({"model": "m", "prompt": "abc", "temperature": 0})
        for tenant in ("a", "b"):
            answer = await here.http.post(
                "/v1/completions", content=asked, headers={"x-tenant": tenant}
            )
            assert source(answer) is None


async def test_a_failed_answer_is_not_kept() -> None:
    async with front(cache=cache()) as here:
        here.executor.error = lambda _: RuntimeError("no")
        assert (await here.complete(temperature=0)).status_code == 500
        here.executor.error = lambda _: None
        assert source(await here.complete(temperature=0)) is None


async def test_a_drained_server_refuses_cached_answers_too() -> None:
    async with front(cache=cache()) as here:
        await here.complete(temperature=0)
        here.generator.drain()
        here.generator.close_intake()

        assert (await here.complete(temperature=0)).status_code == 503


# ---- similar questions


async def test_a_similar_question_gets_the_answer_and_its_similarity() -> None:
    async with front(cache=similar_cache(by_first_word)) as here:
        assert source(await here.chat("paris is where", temperature=0)) is None
        hit = await here.chat("paris lies in which country", temperature=0)
        other = await here.chat("berlin lies in which country", temperature=0)

        assert source(hit) == "semantic"
        assert 0.9 <= float(hit.headers["x-headroom-similarity"]) < 1.0
        assert source(other) is None


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


async def test_a_similar_question_with_another_number_is_another_question() -> None:
    async with front(cache=similar_cache(by_first_word)) as here:
        await here.chat("paris in 2023", temperature=0)

        assert source(await here.chat("paris in the year 2023", temperature=0)) == "semantic"
        assert source(await here.chat("paris in 2024", temperature=0)) is None


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"max_tokens": 3}, id="another length"),
        pytest.param({"stop": "x"}, id="another end"),
        pytest.param({"temperature": 0.3}, id="sampling"),
        pytest.param({"messages": [{"role": "system", "content": "s"}]}, id="another context"),
    ],
)
async def test_only_the_last_text_may_differ(changed: dict[str, Any]) -> None:
    async with front(cache=similar_cache(by_first_word)) as here:
        await here.chat("paris is where", temperature=0)
        before = changed.pop("messages", [])
        messages = [*before, {"role": "user", "content": "paris lies in which country"}]
        asked = {"temperature": 0, "messages": messages, **changed}
        answer = await here.post("/v1/chat/completions", **asked)

        assert source(answer) is None


def test_tools_are_never_answered_by_similarity() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "paris"}], "temperature": 0}
    requests = [
        GenerationRequest(key=1, prompt=(1,), max_tokens=3, sampling=Sampling(temperature=0.0))
    ]
    plain = question_of("m", parse_chat(orjson.dumps(body)), requests)
    tools = question_of("m", parse_chat(orjson.dumps(body | {"tools": [TOOL]})), requests)

    assert plain is not None
    assert plain.scope is not None
    assert tools is not None
    assert tools.scope is None
