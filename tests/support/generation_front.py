"""A generating server in this process: a scripted executor, and an HTTP client."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson

from headroom_server.caching.features import FeatureCache
from headroom_server.caching.generation_cache import GenerationCache
from headroom_server.generation.loop.engine import LoopEngine
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.text.chat import PlainChat
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.text.tokenizer import BYTE_EOS, ByteTokenizer
from headroom_server.generation.values import (
    Alternative,
    Chunk,
    GenerationLimits,
    GenerationRequest,
    Iteration,
    IterationResult,
    SampledToken,
    SequenceView,
)
from headroom_server.openai_api.application import UNREAD_BYTES, GenerationApplication
from headroom_server.runtime.generating.generation_requests import GeneratorOptions
from headroom_server.runtime.generating.generator import Generator
from support.server_world import until

LIMITS = GenerationLimits(
    context_tokens=256,
    vocabulary=258,
    blocks=64,
    block_tokens=16,
    max_sequences=8,
    max_iteration_tokens=64,
)
Script = Callable[[GenerationRequest], bytes]


def answers(text: bytes) -> Script:
    """Every request gets this answer, then the end of the sequence."""
    return lambda _: text


@dataclass
class ScriptedExecutor:
    """Generates the script's bytes, then EOS; can be held, and can fail."""

    script: Script = field(default_factory=lambda: answers(b"hello"))
    device: str = "none"
    limits: GenerationLimits = LIMITS
    free: threading.Event = field(default_factory=threading.Event)
    """Cleared: the next iteration stays on the device until it is set again."""
    began: threading.Event = field(default_factory=threading.Event)
    error: Callable[[Iteration], Exception | None] = lambda _: None
    executed: list[int] = field(default_factory=list)
    """Sequences of each iteration."""
    forgotten: list[int] = field(default_factory=list)
    pace_s: float = 0.0

    def __post_init__(self) -> None:
        self.free.set()

    def load(self) -> GenerationLimits:
        return self.limits

    def execute(self, iteration: Iteration) -> IterationResult:
        self.executed.append(len(iteration.chunks))
        self.began.set()
        self.free.wait(timeout=10)
        if self.pace_s:
            time.sleep(self.pace_s)
        error = self.error(iteration)
        if error is not None:
            raise error
        return IterationResult([self._sampled(chunk) for chunk in iteration.chunks])

    def _sampled(self, chunk: Chunk) -> Sequence[SampledToken]:
        if not chunk.samples:
            return ()
        request = chunk.sequence.request
        at = len(chunk.sequence.tokens) - len(request.prompt)
        text = self.script(request)
        token = text[at] if at < len(text) else BYTE_EOS
        if request.sampling.logprobs is None:
            return (SampledToken(token),)
        others = [Alternative(token, -0.5), Alternative(0, float("-inf"))]
        return (SampledToken(token, -0.5, tuple(others[: request.sampling.logprobs])),)

    def draft(self, sequences: Sequence[SequenceView], count: int) -> Sequence[Sequence[int]]:
        return [() for _ in sequences]

    def forget(self, key: int) -> None:
        self.forgotten.append(key)

    def unload(self) -> None: ...

    def hold(self) -> None:
        self.began.clear()
        self.free.clear()


@dataclass
class FrontWorld:
    executor: ScriptedExecutor
    generator: Generator
    app: GenerationApplication
    http: httpx.AsyncClient

    async def post(self, path: str, **body: object) -> httpx.Response:
        return await self.http.post(path, content=orjson.dumps({"model": "m", **body}))

    async def complete(self, prompt: object = "abc", **body: object) -> httpx.Response:
        return await self.post("/v1/completions", prompt=prompt, **body)

    async def chat(self, *contents: str, **body: object) -> httpx.Response:
        messages = [{"role": "user", "content": one} for one in contents or ("hi",)]
        return await self.post("/v1/chat/completions", messages=messages, **body)

    def outcomes(self) -> dict[str, int]:
        return {str(name): count for name, count in self.generator.ledger.outcomes.items() if count}


def events(answer: httpx.Response) -> list[Any]:
    """The events of a whole stream; the last one must be [DONE], which is omitted."""
    assert answer.headers["content-type"].startswith("text/event-stream")
    data = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    assert data[-1] == "[DONE]"
    return [orjson.loads(one) for one in data[:-1]]


def content(chunks: Iterable[Any], index: int = 0) -> str:
    """The text of one choice of a chat's stream."""
    return "".join(
        choice["delta"].get("content") or ""
        for chunk in chunks
        for choice in chunk["choices"]
        if choice["index"] == index
    )


@asynccontextmanager
async def front(
    executor: ScriptedExecutor | None = None,
    *,
    text: ModelText | None = None,
    scheduling: SchedulingOptions | None = None,
    options: GeneratorOptions | None = None,
    wait: bool = True,
    cache: GenerationCache | None = None,
    features: FeatureCache | None = None,
    max_unread_bytes: int = UNREAD_BYTES,
) -> AsyncIterator[FrontWorld]:
    """A server that is ready unless `wait` is false."""
    executor = executor or ScriptedExecutor()
    engine = LoopEngine("scripted", executor, clock=time.monotonic, options=scheduling)
    generator = Generator("m", engine, options, cache=cache, features=features)
    app = GenerationApplication(
        generator,
        text or ModelText(tokenizer=ByteTokenizer(), chat=PlainChat()),
        max_body_bytes=1 << 20,
        max_unread_bytes=max_unread_bytes,
    )
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as http:
        generator.start()
        try:
            if wait:
                await until(lambda: generator.ready)
                executor.executed.clear()
                executor.forgotten.clear()
            yield FrontWorld(executor, generator, app, http)
        finally:
            executor.free.set()
            generator.stop()
            assert await asyncio.to_thread(generator.join, 5.0)
