"""Warms an engine, so that its first real request is as fast as any other.

Every shape that traffic can produce is executed, because the first execution may compile, allocate
or select kernels. Then single requests are timed: the self-test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headroom_server.engine import Engine, StageTimes, Work, check_outputs
from headroom_server.signature import Signature

SELF_TEST_REQUESTS = 20
"""Enough for a 95th percentile."""
SELF_TEST_S = 1.0
LEAST_SELF_TEST_REQUESTS = 4
"""A slow model is tested for about a second and with at least this many requests: more would delay
a replica that is needed."""


@dataclass(frozen=True, slots=True)
class SelfTest:
    """The latency of single requests on the warm device, and the maximum."""

    p95_s: float
    max_latency_s: float

    @property
    def passed(self) -> bool:
        """Whether the server may become ready."""
        return self.p95_s <= self.max_latency_s


class WarmShape(NamedTuple):
    """A batch size and padded length (0: none) that has been executed."""

    items: int
    length: int
    first_s: float
    """Duration of the first execution, including one-time work."""
    later: tuple[StageTimes, ...]
    """Durations of later executions."""


def shapes(signature: Signature, max_batch_size: int) -> list[tuple[int, int]]:
    """Return all (items, padded length) that a batch up to this size can have on the device.

    Raises:
        ValueError: the model's largest batch size is below `max_batch_size`.
    """
    largest = signature.padded_batch(max_batch_size)
    sizes = [size for size in signature.batches if size <= largest]
    return [
        (size, length)
        for length in signature.lengths or (0,)
        for size in sizes or range(1, max_batch_size + 1)
    ]


def cold_round(
    engine: Engine,
    signature: Signature,
    wanted: Sequence[tuple[int, int]],
    *,
    clock: Callable[[], float],
    checkpoint: Callable[[], None],
) -> list[WarmShape]:
    """Execute every shape for the first time. `checkpoint` may raise to abort."""
    done = []
    for items, length in wanted:
        checkpoint()
        first = _timed(engine, signature, items, length, clock)
        done.append(WarmShape(items, length, first.total_s, ()))
    return done


def warm_rounds(
    engine: Engine,
    signature: Signature,
    cold: Sequence[WarmShape],
    *,
    requests: int,
    clock: Callable[[], float],
    checkpoint: Callable[[], None],
) -> list[WarmShape]:
    """Execute every shape again, until there were `requests` requests including the first round."""
    per_round = sum(shape.items for shape in cold)
    warm = list(cold)
    for _ in range(max(1, math.ceil(requests / per_round) - 1)):
        for at, shape in enumerate(warm):
            checkpoint()
            again = _timed(engine, signature, shape.items, shape.length, clock)
            warm[at] = shape._replace(later=(*shape.later, again))
    return warm


def self_test(
    engine: Engine,
    signature: Signature,
    *,
    requests: int,
    max_latency_s: float,
    clock: Callable[[], float],
    checkpoint: Callable[[], None],
) -> SelfTest:
    """Return the 95th percentile (nearest rank) of single requests: at most 20, for about 1 s.

    Requests with a length have the longest one.
    """
    seconds: list[float] = []
    most = min(requests, SELF_TEST_REQUESTS)
    length = signature.lengths[-1] if signature.lengths else 0
    while len(seconds) < most and (
        len(seconds) < LEAST_SELF_TEST_REQUESTS or sum(seconds) < SELF_TEST_S
    ):
        checkpoint()
        seconds.append(_timed(engine, signature, 1, length, clock).total_s)
    p95_s = sorted(seconds)[math.ceil(0.95 * len(seconds)) - 1]
    return SelfTest(p95_s, max_latency_s)


def synthetic(signature: Signature, items: int, length: int) -> list[Work]:
    """Return this many requests of zeros, of this length (0: none)."""
    inputs = {spec.name: spec.zeros(1, length) for spec in signature.inputs}
    return [Work(1, inputs, length)] * items


def execute(engine: Engine, signature: Signature, batch: Sequence[Work]) -> None:
    """Run all three steps, and check and discard the outputs.

    Raises what the engine raises, and ValueError for undeclared outputs.
    """
    longest = max(work.length for work in batch)
    staged = engine.stage(batch, signature.padded_length(longest))
    check_outputs(signature, batch, engine.finish(staged, engine.execute(staged)))


def _timed(
    engine: Engine, signature: Signature, items: int, length: int, clock: Callable[[], float]
) -> StageTimes:
    batch = synthetic(signature, items, length)
    began_s = clock()
    staged = engine.stage(batch, length)
    staged_s = clock()
    result = engine.execute(staged)
    executed_s = clock()
    outputs = engine.finish(staged, result)
    finished_s = clock()
    check_outputs(signature, batch, outputs)
    return StageTimes(
        staged.preprocess_s,
        max(0.0, staged_s - began_s - staged.preprocess_s),
        # a coarse clock must not report a duration of 0
        max(executed_s - staged_s, 1e-6),
        finished_s - executed_s,
    )
