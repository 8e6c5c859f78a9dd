"""vLLM's AsyncLLM as a third-party model: requests in, tokens out, its statistics as steps.

It gets token numbers and returns token numbers: text is read and written by the front, so that
stop strings, tool calls and logprobs are the same as with Headroom's engine.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from headroom_server.engine import DeviceLostError, LoadError
from headroom_server.errors import InvalidRequestError
from headroom_server.generation.third_party.ports import Observe, Produced, Step
from headroom_server.generation.values import (
    Alternative,
    FinishReason,
    GenerationLimits,
    GenerationRequest,
    SampledToken,
)
from headroom_server.vllm_engine.parameters import sampling_parameters

FINISHES = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH}


class AsyncEngine(Protocol):
    """Used part of `vllm.v1.engine.async_llm.AsyncLLM`."""

    def generate(
        self, prompt: Any, sampling_params: Any, request_id: str, *, priority: int = 0
    ) -> AsyncGenerator[Any, None]:
        """Yield RequestOutputs until one is finished."""

    @property
    def errored(self) -> bool:
        """Whether the engine is dead."""

    def shutdown(self) -> None:
        """End its processes."""


class Opened(NamedTuple):
    """A running engine."""

    engine: AsyncEngine
    limits: GenerationLimits
    device: str
    make_parameters: Callable[[Mapping[str, Any]], Any]
    """Makes vLLM's SamplingParams from their fields.

    Raises:
        ValueError: vLLM does not take them.
    """


Open = Callable[[Callable[[Any, Any], None]], Opened]
"""Starts vLLM; its argument gets vLLM's SchedulerStats and IterationStats after each iteration.

Raises:
    LoadError: it does not start with this model and these arguments.
"""


class VllmModel:
    """See `ThirdPartyModel`."""

    def __init__(self, open_engine: Open) -> None:
        self._open = open_engine
        self._opened: Opened | None = None
        self.device = "vllm"

    def open(self, observe: Observe) -> GenerationLimits:
        """Start vLLM: its processes load the model, compile it, and capture their graphs."""
        opened = self._open(lambda scheduler, iteration: observe(step_of(scheduler, iteration)))
        self._opened = opened
        self.device = opened.device
        limits = opened.limits
        if limits.blocks < 1 or limits.context_tokens < 2:
            raise LoadError(f"vLLM must have memory for keys and values; it reports {limits}")
        return limits

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[Produced, None]:
        """Generate one answer."""
        opened = self._opened
        assert opened is not None, "open comes first"
        try:
            parameters = opened.make_parameters(sampling_parameters(request))
        except ValueError as error:
            raise InvalidRequestError(f"vLLM does not take the request: {error!s:.300}") from error
        prompt: dict[str, object] = {"prompt_token_ids": list(request.prompt)}
        if request.tenant:  # a first token that comes fast would tell what another tenant asked
            prompt["cache_salt"] = f"tenant {request.tenant}"
        # 0 is the most urgent for both; batch-class requests come after all priorities
        priority = request.priority + 10 * request.batch_class
        answer = opened.engine.generate(
            prompt, parameters, request_id=str(request.key), priority=priority
        )
        first = True
        try:
            async with contextlib.aclosing(answer) as outputs:
                async for output in outputs:
                    produced = produced_of(output, first=first)
                    first = first and not produced.tokens
                    yield produced
        except ValueError as error:  # vLLM validates requests when it takes them
            raise InvalidRequestError(f"vLLM does not take the request: {error!s:.300}") from error
        except Exception as error:
            if self.lost:
                raise DeviceLostError("vLLM's engine is dead") from error
            raise

    @property
    def lost(self) -> bool:
        """Whether vLLM's engine is dead."""
        return self._opened is not None and self._opened.engine.errored

    def close(self) -> None:
        """End vLLM's processes."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.engine.shutdown()


def produced_of(output: Any, *, first: bool) -> Produced:
    """Return the new tokens of a RequestOutput of kind DELTA.

    Raises:
        RuntimeError: vLLM ended the request for a reason of its own.
    """
    (one,) = output.outputs
    finish = None
    if one.finish_reason is not None:
        finish = FINISHES.get(one.finish_reason)
        if finish is None:
            raise RuntimeError(f"vLLM ended the request: {one.finish_reason}")
    numbers = list(one.token_ids)
    tokens = (
        tuple(map(SampledToken, numbers))
        if one.logprobs is None
        else tuple(map(_with_logprobs, numbers, one.logprobs))
    )
    cached = (output.num_cached_tokens or 0) if first and tokens else 0
    return Produced(tokens, finish, cached)


def _with_logprobs(token: int, found: Mapping[int, Any]) -> SampledToken:
    """Return a token with its alternatives by rank; vLLM adds the chosen one if it has none."""
    ranked: Sequence[tuple[int, Any]] = sorted(
        ((number, one) for number, one in found.items() if one.rank is not None),
        key=lambda pair: pair[1].rank,
    )
    alternatives = tuple(Alternative(number, one.logprob) for number, one in ranked)
    return SampledToken(token, found[token].logprob, alternatives)


def step_of(scheduler: Any, iteration: Any) -> Step:
    """Return what vLLM says of an iteration; its statistics are no stable interface."""
    details = getattr(scheduler, "iteration_details", None)
    used = getattr(scheduler, "kv_cache_usage", None)
    waiting = getattr(scheduler, "num_waiting_reqs", 0)
    waiting += getattr(scheduler, "num_skipped_waiting_reqs", 0)
    preemptions = getattr(iteration, "num_preempted_reqs", 0)
    if details is None or details.is_dummy:
        return Step(preemptions=preemptions, waiting=waiting, used_share=used)
    return Step(
        prompt_tokens=details.num_ctx_tokens,
        decodes=details.num_generation_requests,
        seconds=details.elapsed_ms / 1000.0,
        preemptions=preemptions,
        waiting=waiting,
        used_share=used,
    )
