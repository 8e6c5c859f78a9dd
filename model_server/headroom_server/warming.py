"""Bringing an engine to the state in which its first real request is as fast as any other.

Every batch size that traffic can produce is executed, since a size that was never run may compile,
allocate or pick its kernels on first use. Then single requests are timed: the self-test.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from headroom_server.engine import Engine, Work, check_outputs
from headroom_server.tensors import Signature

SELF_TEST_REQUESTS = 20
"""Enough for a 95th percentile."""
SELF_TEST_S = 1.0
LEAST_SELF_TEST_REQUESTS = 4
"""A slow model is tested for about a second, and by this many requests at least: each further one
would keep a replica from work that waits for it."""


@dataclass(frozen=True, slots=True)
class SelfTest:
    """What single requests took on the warm device, against what they may take."""

    p95_s: float
    max_latency_s: float

    @property
    def passed(self) -> bool:
        """Whether the server may call itself ready."""
        return self.p95_s <= self.max_latency_s


def warm_up(
    engine: Engine,
    signature: Signature,
    *,
    max_batch_size: int,
    requests: int,
    clock: Callable[[], float],
    checkpoint: Callable[[], None],
) -> list[tuple[int, float]]:
    """Execute every batch size twice or more, with at least `requests` requests in all.

    The first round is cold and not timed. `checkpoint` is called before each batch and may raise to
    end it.

    Returns:
        (items, seconds) of each timed batch.
    """
    timings: list[tuple[int, float]] = []
    executed = 0
    while executed < requests or not timings:
        cold = executed == 0
        for size in range(1, max_batch_size + 1):
            checkpoint()
            seconds = _timed(engine, signature, size, clock)
            executed += size
            if not cold:
                timings.append((size, seconds))
    return timings


def self_test(
    engine: Engine,
    signature: Signature,
    *,
    requests: int,
    max_latency_s: float,
    clock: Callable[[], float],
    checkpoint: Callable[[], None],
) -> SelfTest:
    """The 95th percentile (nearest rank) of single requests: at most 20, for about a second."""
    seconds: list[float] = []
    most = min(requests, SELF_TEST_REQUESTS)
    while len(seconds) < most and (
        len(seconds) < LEAST_SELF_TEST_REQUESTS or sum(seconds) < SELF_TEST_S
    ):
        checkpoint()
        seconds.append(_timed(engine, signature, 1, clock))
    p95_s = sorted(seconds)[math.ceil(0.95 * len(seconds)) - 1]
    return SelfTest(p95_s, max_latency_s)


def _synthetic(signature: Signature, size: int) -> list[Work]:
    inputs = {spec.name: spec.zeros(1) for spec in signature.inputs}
    return [Work(1, inputs)] * size


def _timed(engine: Engine, signature: Signature, size: int, clock: Callable[[], float]) -> float:
    batch = _synthetic(signature, size)
    began_s = clock()
    outputs = engine.execute(batch)
    # a clock of coarse resolution must not time a batch at nothing
    seconds = max(clock() - began_s, 1e-6)
    check_outputs(signature, batch, outputs)
    return seconds
