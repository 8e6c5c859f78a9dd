"""A generating server that refuses, fails or hangs: what clients get, and what is counted."""

from __future__ import annotations

import asyncio

import pytest

from headroom_server.engine import DeviceLostError, OutOfMemoryError
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.text.constraint_owner import UNNAMED, Owner
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.text.tokenizer import (
    ByteDetokenizer,
    ByteTokenizer,
    Detokenizer,
)
from headroom_server.generation.token_grammar import TokenGrammar
from headroom_server.runtime.generating.generation_requests import GeneratorOptions
from support.generation_front import LIMITS, ScriptedExecutor, answers, front
from support.server_world import until

pytestmark = pytest.mark.clock


async def test_unready_server_refuses() -> None:
    executor = ScriptedExecutor()
    executor.hold()
    async with front(executor, wait=False) as world:
        answer = await world.complete()
        assert (await world.http.get("/v2/health/ready")).status_code == 503
        assert (await world.http.get("/v2/health/live")).status_code == 200
        executor.free.set()
        await until(lambda: world.generator.ready)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert answer.json()["error"]["code"] == "service_unavailable"
    assert world.outcomes() == {"refused": 1}


@pytest.mark.parametrize("stream", [False, True])
async def test_deadline_before_first_token_is_504_and_is_counted(stream: bool) -> None:
    executor = ScriptedExecutor()
    async with front(executor) as world:
        executor.hold()
        first = asyncio.create_task(world.complete())
        await until(executor.began.is_set)
        late = asyncio.create_task(
            world.http.post(
                "/v1/completions",
                json={"model": "m", "prompt": "a", "stream": stream},
                headers={"x-request-timeout": "0.2"},
            )
        )
        await asyncio.sleep(0.4)
        executor.free.set()
        assert (await late).status_code == 504
        assert (await first).status_code == 200
    assert world.outcomes() == {"ok": 1, "expired": 1}
    assert world.generator.ledger.deadlines_missed == 1


async def test_full_queue_is_429_with_seconds_to_wait() -> None:
    executor = ScriptedExecutor(limits=LIMITS._replace(max_sequences=1))
    async with front(executor, scheduling=SchedulingOptions(max_waiting_requests=1)) as world:
        executor.hold()
        tasks = [asyncio.create_task(world.complete()) for _ in range(6)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        executor.free.set()
        results = [await task for task in tasks]
    refused = [one for one in results if one.status_code == 429]
    assert refused
    assert int(refused[0].headers["retry-after"]) >= 1
    assert refused[0].json()["error"]["type"] == "rate_limit_error"
    assert world.outcomes() == {"ok": 6 - len(refused), "refused": len(refused)}


@pytest.mark.parametrize(
    ("error", "words", "lines"),
    [(OutOfMemoryError("no"), "no memory", 0), (FloatingPointError("no"), "NaN or infinity", 1)],
)
async def test_request_that_fails_alone_fails_and_others_do_not(
    error: Exception, words: str, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    def bad(iteration: object) -> Exception | None:
        chunks = iteration.chunks  # type: ignore[attr-defined]
        failing = any(66 in one.sequence.request.prompt for one in chunks)
        return error if failing else None

    executor = ScriptedExecutor(error=bad)
    async with front(executor) as world:
        good, failed = await asyncio.gather(world.complete("aa"), world.complete("BB"))
    assert good.json()["choices"][0]["text"] == "hello"
    assert failed.status_code == 500
    assert words in failed.json()["error"]["message"]
    assert world.outcomes() == {"ok": 1, "failed": 1}
    warned = [one for one in caplog.records if one.levelname in ("WARNING", "ERROR")]
    assert len(warned) == lines
    assert all(one.exc_info is None for one in warned)


class UnreadableTokenizer(ByteTokenizer):
    """Its detokenizer fails at the token `!`."""

    def detokenizer(self) -> Detokenizer:
        table = {token: bytes((token,)) for token in range(256) if token != ord("!")}
        return ByteDetokenizer(table)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("said", [b"!", b"he!lo"])
async def test_answer_that_cannot_be_written_fails_and_is_not_left_open(
    said: bytes, stream: bool
) -> None:
    executor = ScriptedExecutor(lambda one: said if one.prompt[-1] == ord("b") else b"hello")
    async with front(executor, text=ModelText(tokenizer=UnreadableTokenizer())) as world:
        async with asyncio.timeout(5):
            bad, good = await asyncio.gather(
                world.complete("b", n=2, stream=stream, max_tokens=9), world.complete("a")
            )
        assert "cannot be written" in bad.text
        assert bad.status_code == (200 if stream and said != b"!" else 500)
        assert good.json()["choices"][0]["text"] == "hello"
        await until(lambda: not world.generator.in_flight)
        assert world.outcomes() == {"ok": 1, "failed": 1}


async def test_stream_that_fails_after_it_began_ends_with_an_error_event() -> None:
    executor = ScriptedExecutor(answers(b"hello"))
    async with front(executor) as world:
        executor.error = lambda one: (
            RuntimeError("/secret/path") if len(one.chunks[0].sequence.tokens) > 6 else None
        )
        answer = await world.complete(stream=True)
    assert answer.status_code == 200
    last = answer.text.strip().split("\n\n")[-1]
    assert last.startswith('data: {"error":')
    assert "secret" not in last
    assert "[DONE]" not in answer.text
    assert world.outcomes() == {"failed": 1}


async def test_lost_device_fails_everything_and_liveness() -> None:
    executor = ScriptedExecutor()
    async with front(executor) as world:
        executor.error = lambda _: DeviceLostError("gone")
        answer = await world.complete()
        assert answer.status_code == 500
        await until(lambda: not world.generator.live)
        assert (await world.http.get("/v2/health/live")).status_code == 503
        assert (await world.complete()).status_code == 503


async def test_hanging_iteration_fails_its_requests_and_liveness_until_it_ends() -> None:
    executor = ScriptedExecutor()
    async with front(executor, options=GeneratorOptions(stall_timeout_s=0.05)) as world:
        executor.hold()
        task = asyncio.create_task(world.complete())
        await until(executor.began.is_set)
        await asyncio.sleep(0.1)
        world.generator.watch()
        assert not world.generator.live
        assert (await task).status_code == 500
        executor.free.set()
        await until(lambda: world.generator.engine.executing_since_s is None)
        world.generator.watch()
        assert world.generator.ready
        assert (await world.complete()).json()["choices"][0]["text"] == "hello"


class Exhausted:
    """Grammars that allow one token, and then take too much work."""

    finished = False

    def __init__(self) -> None:
        self._left = 1

    def known(self, kind: str, text: str) -> None:
        pass

    def compile(
        self, kind: str, text: str, *, quick: bool = False, owner: Owner = UNNAMED
    ) -> TokenGrammar:
        return Exhausted()

    def allowed(self) -> memoryview:
        return memoryview(bytes([0xFF] * 64))

    def accept(self, token: int) -> bool:
        self._left -= 1
        return self._left >= 0


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("stream", [False, True])
async def test_constraint_that_cannot_be_followed_is_the_clients_error_and_no_miss(
    stream: bool, n: int
) -> None:
    text = ModelText(tokenizer=ByteTokenizer(), grammars=Exhausted())
    async with front(text=text) as world:
        answer = await world.complete(guided_regex="a*", stream=stream, n=n)
        if stream:  # it has begun: an error event ends it, without [DONE]
            assert '"type":"invalid_request_error"' in answer.text
            assert "[DONE]" not in answer.text
        else:
            assert answer.status_code == 400
            assert answer.json()["error"]["message"].startswith("the constraint must allow")
        await until(lambda: not world.generator.in_flight)
        assert world.outcomes() == {"invalid": 1}
        assert not world.generator.ledger.invalid
