"""Tokens of long prompts over HTTP: which requests find them, and that answers stay the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import httpx
import orjson
import pytest

from headroom_server.caching.feature_values import FeatureKind
from headroom_server.caching.features import FeatureCache, FeatureCounts
from headroom_server.caching.flights import Source
from headroom_server.caching.levels import LevelOptions
from headroom_server.generation.text.chat import PlainChat
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.text.tokenizer import ByteTokenizer
from headroom_server.generation.values import GenerationLimits
from support.generation_front import FrontWorld, ScriptedExecutor, front

LIMITS = GenerationLimits(
    context_tokens=1 << 15,
    vocabulary=258,
    blocks=1 << 13,
    block_tokens=16,
    max_sequences=8,
    max_iteration_tokens=1 << 15,
)
LONG = "word " * 4000


class CountingTokenizer(ByteTokenizer):
    def __init__(self) -> None:
        super().__init__()
        self.encoded = 0

    def encode(self, text: str, *, special: bool) -> Sequence[int]:
        self.encoded += 1
        return super().encode(text, special=special)


class LongPrompts(NamedTuple):
    front: FrontWorld
    tokenizer: CountingTokenizer

    async def complete(
        self, prompt: object, headers: Mapping[str, str] | None = None, **body: object
    ) -> httpx.Response:
        asked = orjson.dumps({"model": "m", "prompt": prompt, **body})
        answer = await self.front.http.post("/v1/completions", content=asked, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer

    def counts(self) -> FeatureCounts:
        features = self.front.generator.features
        assert features is not None
        return features.counts()


@asynccontextmanager
async def long_prompts() -> AsyncIterator[LongPrompts]:
    tokenizer = CountingTokenizer()
    text = ModelText(tokenizer=tokenizer, chat=PlainChat())
    features = FeatureCache(LevelOptions(1 << 20, 60.0, lambda: 0.0))
    async with front(ScriptedExecutor(limits=LIMITS), text=text, features=features) as here:
        yield LongPrompts(here, tokenizer)


async def test_a_long_prompt_is_tokenized_once() -> None:
    async with long_prompts() as here:
        first, *others = await asyncio.gather(*(here.complete(LONG) for _ in range(4)))
        others += [await here.complete(LONG), await here.complete(LONG, temperature=0.5)]

        assert here.tokenizer.encoded == 1
        for one in others:
            assert one.json()["choices"] == first.json()["choices"]
            assert one.json()["usage"]["prompt_tokens"] == len(LONG) + 1
        found = here.counts().by_source
        late = found[FeatureKind.TOKENS, Source.MEMORY]
        assert late + found[FeatureKind.TOKENS, Source.FLIGHT] == 5
        metrics = (await here.front.http.get("/metrics")).text
        hits = 'headroom_feature_cache_hits_total{model="m",kind="tokens",level="memory"}'
        assert f"{hits} {late}" in metrics
        assert 'headroom_feature_cache_misses_total{model="m",kind="tokens"} 1' in metrics


async def test_a_long_chat_is_rendered_each_time_and_tokenized_once() -> None:
    async with long_prompts() as here:
        answers = [await here.front.chat(LONG) for _ in range(3)]
        assert [one.status_code for one in answers] == [200] * 3
        assert here.tokenizer.encoded == 1
        assert (await here.front.chat(LONG, "and more")).status_code == 200
        assert here.tokenizer.encoded == 2


@pytest.mark.parametrize(
    ("prompt", "headers"),
    [
        pytest.param("short", {}, id="short"),
        pytest.param([LONG[:9000], LONG[:9000]], {}, id="several"),
        pytest.param([7] * 9000, {}, id="tokens"),
        pytest.param(LONG, {"cache-control": "no-store"}, id="marked personal"),
    ],
)
async def test_prompts_that_are_not_kept(prompt: object, headers: Mapping[str, str]) -> None:
    async with long_prompts() as here:
        for _ in range(2):
            await here.complete(prompt, headers)
        assert here.counts().levels.entries == 0


async def test_tenants_share_no_tokens() -> None:
    async with long_prompts() as here:
        for tenant in ("a", "b", "a"):
            await here.complete(LONG, {"x-tenant": tenant})
        assert here.tokenizer.encoded == 2


async def test_a_cached_prompt_is_checked_as_any_other() -> None:
    async with long_prompts() as here:
        await here.complete(LONG)
        answer = await here.front.complete(LONG, max_tokens=1 << 14)

        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "context_length_exceeded"
