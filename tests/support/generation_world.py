"""A world for the scheduler of generation: a virtual device, requests, a clock that is a number.

The device takes t = a + b P + d D + c KV + e X seconds for an iteration and generates tokens from
each sequence's tokens alone, so that every schedule must give the same answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from headroom_server.errors import RefusedError
from headroom_server.generation.scheduling.costs.iteration_cost import Features, features_of
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.scheduling.scheduler import Scheduler
from headroom_server.generation.values import (
    Chunk,
    Delivery,
    FinishReason,
    GenerationLimits,
    GenerationRequest,
    Iteration,
    IterationResult,
    SampledToken,
)

LIMITS = GenerationLimits(
    context_tokens=16_384,
    vocabulary=1000,
    blocks=4096,
    block_tokens=16,
    max_sequences=64,
    max_iteration_tokens=2048,
)
END = 0
"""The token that ends a sequence."""


def next_token(tokens: Sequence[int]) -> int:
    """Return the token that the model gives after these; never `END`."""
    return 1 + (31 * tokens[-1] + 17 * tokens[0] + len(tokens)) % 998


@dataclass
class Device:
    """Seconds per term of an iteration's time; the defaults are Llama 8B on an H100."""

    base_s: float = 5.71e-3
    per_token_s: float = 1.676e-5
    per_decode_s: float = 1.436e-5
    per_context_s: float = 4.10e-8
    per_product_s: float = 1.0e-9
    lengths: dict[int, int] = field(default_factory=dict)
    """Generated tokens until the end token, by key; without an entry max_tokens decide."""

    model: Callable[[Sequence[int]], int] = next_token
    block_tokens: int = LIMITS.block_tokens

    def seconds(self, features: Features) -> float:
        return (
            self.base_s
            + self.per_token_s * features.prompt_tokens
            + self.per_decode_s * features.decodes
            + self.per_context_s * features.context_tokens
            + self.per_product_s * features.products
        )

    def execute(self, iteration: Iteration) -> IterationResult:
        return IterationResult([self._sample(chunk) for chunk in iteration.chunks])

    def _sample(self, chunk: Chunk) -> Sequence[SampledToken]:
        sequence, start, tokens, blocks, samples, drafts = chunk
        held = sequence.tokens
        expected = (*held, *tokens[len(tokens) - drafts :]) if drafts else held
        assert tuple(expected[start : start + len(tokens)]) == tokens
        assert len(blocks) * self.block_tokens >= start + len(tokens)
        if not samples:
            return ()
        ends = self.lengths.get(sequence.request.key)
        got: list[SampledToken] = []
        context = list(held) if drafts else []
        for draft in (*tokens[len(tokens) - drafts :], None) if drafts else (None,):
            so_far = context if drafts else held
            made = len(so_far) - len(sequence.request.prompt) + 1
            token = END if ends is not None and made >= ends else self.model(so_far)
            got.append(SampledToken(token))
            if token != draft:
                break
            context.append(token)
        return got


def request(
    key: int, prompt: int | tuple[int, ...] = 8, max_tokens: int = 4, **given: Any
) -> GenerationRequest:
    """Return a request; a prompt given as a length has tokens that no other key's prompt has."""
    if isinstance(prompt, int):
        prompt = tuple(1 + (key * 7919 + at * 104_729) % 998 for at in range(prompt))
    return GenerationRequest(
        key=key, prompt=prompt, max_tokens=max_tokens, stop_tokens=frozenset({END}), **given
    )


@dataclass
class RequestRecord:
    """Record of one request."""

    request: GenerationRequest
    token_times_s: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    finish: FinishReason | None = None
    refused: bool = False
    cached_tokens: int = 0

    @property
    def first_token_s(self) -> float:
        """Return the time from arrival to the first token."""
        return self.token_times_s[0] - self.request.arrived_s

    @property
    def per_token_s(self) -> float:
        """Return the mean time between tokens."""
        times = self.token_times_s
        return (times[-1] - times[0]) / max(1, len(times) - 1)


class World:
    """Runs requests through a scheduler and a device on a virtual clock."""

    def __init__(
        self,
        device: Device | None = None,
        limits: GenerationLimits = LIMITS,
        options: SchedulingOptions | None = None,
    ) -> None:
        self.device = device or Device()
        self.scheduler = Scheduler(limits, options)
        self.now_s = 0.0
        self.busy_s = 0.0
        self.records: dict[int, RequestRecord] = {}
        self._events: list[tuple[float, int, Callable[[], None]]] = []

    def at(self, time_s: float, action: Callable[[], None]) -> None:
        """Call an action at a time."""
        heappush(self._events, (time_s, len(self.records) + len(self._events) * 10_000_000, action))

    def arrive(self, requests: Iterable[GenerationRequest]) -> None:
        """Let requests arrive at their times."""
        for one in requests:
            self.records[one.key] = RequestRecord(one)
            heappush(self._events, (one.arrived_s, one.key, self._adding(one)))

    def cancel(self, key: int) -> None:
        """Let a client leave now."""
        self.deliver(self.scheduler.cancel(key, self.now_s))

    def run(self, until_s: float = float("inf")) -> None:
        """Run until nothing is left to do."""
        while self.now_s < until_s:
            self._due(self.now_s)
            self.deliver(self.scheduler.expire(self.now_s))
            iteration = self.scheduler.next_iteration(self.now_s)
            if iteration is None:
                wake_s = min(
                    self._events[0][0] if self._events else float("inf"),
                    self.scheduler.expires_s + 1e-9,
                )
                if wake_s == float("inf"):
                    return
                self.now_s = max(self.now_s, wake_s)
                continue
            began_s, result = self.now_s, self.device.execute(iteration)
            seconds = self.device.seconds(features_of(iteration))
            self.busy_s += seconds
            self._due(began_s + seconds)
            self.now_s = began_s + seconds
            self.deliver(self.scheduler.complete(iteration, result, began_s, self.now_s))

    def deliver(self, deliveries: Sequence[Delivery]) -> None:
        """Record deliveries; nothing may follow a finish."""
        for delivery in deliveries:
            record = self.records[delivery.key]
            assert record.finish is None, "delivered after the finish"
            for sampled in delivery.tokens:
                record.tokens.append(sampled.token)
                record.token_times_s.append(self.now_s)
            record.finish = delivery.finish
            record.cached_tokens += delivery.cached_tokens

    def _due(self, until_s: float) -> None:
        while self._events and self._events[0][0] <= until_s:
            self.now_s, _, action = heappop(self._events)
            action()

    def _adding(self, one: GenerationRequest) -> Callable[[], None]:
        def add() -> None:
            try:
                self.scheduler.add(one, self.now_s)
            except RefusedError:
                self.records[one.key].refused = True

        return add


def percentile(values: Iterable[float], share: float) -> float:
    """Return the smallest value that at least this share does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
