"""A stand-in for vLLM's AsyncLLM: the same calls, answers by a script, no model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from headroom_server.engine import LoadError
from headroom_server.generation.values import GenerationLimits
from headroom_server.vllm_engine.model import Opened

LIMITS = GenerationLimits(
    context_tokens=256,
    vocabulary=258,
    blocks=64,
    block_tokens=16,
    max_sequences=4,
    max_iteration_tokens=64,
)
END = 257


def output(
    tokens: Sequence[int], finish: str | None = None, *, cached: int | None = None, **more: Any
) -> Any:
    """A RequestOutput of kind DELTA."""
    one = SimpleNamespace(
        token_ids=list(tokens), finish_reason=finish, logprobs=more.get("logprobs")
    )
    return SimpleNamespace(outputs=[one], num_cached_tokens=cached)


@dataclass
class FakeAsyncLLM:
    """Generates a byte per turn of the loop until max_tokens, or as `script` says."""

    script: Callable[[Sequence[int]], bytes] = lambda prompt: b"hello"
    observe: Callable[[Any, Any], None] = lambda *_: None
    errored: bool = False
    error: Callable[[str], Exception | None] = lambda _: None
    held: asyncio.Event | None = None
    """Not None: answers wait for it after their first token."""
    started: list[str] = field(default_factory=list)
    """Request ids, in the order in which they came."""
    running: set[str] = field(default_factory=set)
    aborted: list[str] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)
    priorities: dict[str, int] = field(default_factory=dict)
    prompts: dict[str, Any] = field(default_factory=dict)
    shut_down: bool = False
    most_running: int = 0

    async def generate(
        self, prompt: Any, sampling_params: Any, request_id: str, *, priority: int = 0
    ) -> AsyncGenerator[Any, None]:
        self.started.append(request_id)
        self.parameters[request_id] = sampling_params
        self.priorities[request_id] = priority
        self.prompts[request_id] = prompt
        error = self.error(request_id)
        if error is not None:
            raise error
        self.running.add(request_id)
        self.most_running = max(self.most_running, len(self.running))
        tokens = prompt["prompt_token_ids"]
        try:
            yield await self._first(tokens, sampling_params)
            answer = self._answer(tokens, sampling_params)
            for at, token in enumerate(answer[1:], start=2):
                await (asyncio.sleep(0) if self.held is None else self.held.wait())
                last = at == len(answer)
                stops = token in sampling_params.stop_token_ids
                finish = ("stop" if stops else "length") if last else None
                self._step(0, 1)
                yield output([token], finish)
        except (asyncio.CancelledError, GeneratorExit):
            self.aborted.append(request_id)
            raise
        finally:
            self.running.discard(request_id)

    def _answer(self, prompt: Sequence[int], parameters: Any) -> Sequence[int]:
        answer = [*self.script(prompt), *[END] * 300][: parameters.max_tokens]
        if END in answer and END in parameters.stop_token_ids:
            del answer[answer.index(END) + 1 :]
        return answer

    async def _first(self, prompt: Sequence[int], parameters: Any) -> Any:
        await asyncio.sleep(0)
        answer = self._answer(prompt, parameters)
        self._step(len(prompt), 0)
        finish = None
        if len(answer) == 1:
            finish = "stop" if answer[0] in parameters.stop_token_ids else "length"
        return output(answer[:1], finish, cached=0)

    def _step(self, prompt_tokens: int, decodes: int) -> None:
        details = SimpleNamespace(
            num_ctx_tokens=prompt_tokens,
            num_generation_requests=decodes,
            elapsed_ms=1.0,
            is_dummy=False,
        )
        scheduler = SimpleNamespace(
            iteration_details=details,
            kv_cache_usage=0.25,
            num_waiting_reqs=0,
            num_skipped_waiting_reqs=0,
        )
        self.observe(scheduler, SimpleNamespace(num_preempted_reqs=0))

    def shutdown(self) -> None:
        self.shut_down = True


def opening_of(
    engine: FakeAsyncLLM, limits: GenerationLimits = LIMITS, failure: str = ""
) -> Callable[[Callable[[Any, Any], None]], Opened]:
    """Return the function that starts the stand-in."""

    def make(fields: Mapping[str, Any]) -> Any:
        if fields["temperature"] > 2.0:
            raise ValueError("temperature must be at most 2")
        return SimpleNamespace(**fields)

    def start(observe: Callable[[Any, Any], None]) -> Opened:
        if failure:
            raise LoadError(failure)
        engine.observe = observe
        return Opened(engine, limits, "cpu", make)

    return start
