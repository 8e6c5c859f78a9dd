"""An open-loop sweep of rising rates: the next rate, and the result so far.

Measurements are passed in, step by step. Rates rise by half until a step misses the target. Then
the gap between the last rate that met it and the first that missed it is halved a few times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from headroom.planner.errors import positive, require, share

RISE = 1.5
REFINEMENTS = 2
MOST_STEPS = 20
FIRST_SHARE = 0.25
"""Share of the rate of one request at a time, or of the throughput that the server advertises."""


class LoadStep(Protocol):
    """The measurement of one rate. Adapters match it by structure."""

    @property
    def rate_rps(self) -> float:
        """Scheduled requests per second."""

    @property
    def latencies_s(self) -> Sequence[float]:
        """Latencies of successful answers, from the scheduled time of each."""

    @property
    def missed(self) -> int:
        """Refused, failed, lost or later than the timeout."""

    @property
    def batches(self) -> float | None:
        """Batches during the step, by the server's counters; None without them."""

    @property
    def batch_items(self) -> float | None:
        """Items in them."""

    @property
    def batch_seconds(self) -> float | None:
        """Time that they took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepBounds:
    """The SLO target of a sweep, and its highest rate."""

    target_s: float
    percentile: float = 0.95
    max_rate_rps: float = 1000.0

    def __post_init__(self) -> None:
        """Raise ImpossiblePlan for invalid bounds."""
        positive("the latency target", self.target_s, "Give the latency that a request may have")
        share("the percentile", self.percentile, "Give one such as 0.95")
        positive("the maximum rate", self.max_rate_rps, "Give requests per second")


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResult:
    """The rates between which the target is first missed."""

    met_rps: float | None
    """The highest rate that met the target, below any that missed it; None if the first missed."""
    missed_rps: float | None
    """The lowest rate that missed; None if none did: the capacity is above the highest rate."""


def latency_of(step: LoadStep, percentile: float) -> float:
    """Percentile over all requests of a step; a miss counts as infinite."""
    total = len(step.latencies_s) + step.missed
    require(total > 0, "a step must have requests", 0, "Measure longer")
    rank = max(1, math.ceil(percentile * total - 1e-9))
    if rank > len(step.latencies_s):
        return math.inf
    return sorted(step.latencies_s)[rank - 1]


def met(step: LoadStep, bounds: SweepBounds) -> bool:
    """Return whether the step met the target."""
    return latency_of(step, bounds.percentile) <= bounds.target_s


def result_of(steps: Sequence[LoadStep], bounds: SweepBounds) -> SweepResult:
    """Bracket the capacity. A rate counts as met only below the lowest missed one."""
    missed = min((one.rate_rps for one in steps if not met(one, bounds)), default=None)
    fine = [
        one.rate_rps
        for one in steps
        if met(one, bounds) and (missed is None or one.rate_rps < missed)
    ]
    return SweepResult(met_rps=max(fine, default=None), missed_rps=missed)


def first_rate(idle_s: float, said_rps: float | None, bounds: SweepBounds) -> float:
    """Return a rate well below the advertised throughput, or else that of one at a time."""
    positive("the latency of a single request", idle_s, "Measure at least one answer")
    return min(bounds.max_rate_rps, FIRST_SHARE * (said_rps or 1.0 / idle_s))


def step_seconds(rate_rps: float, bounds: SweepBounds, least_s: float) -> float:
    """Return how long to hold a rate: until ten requests may miss, within 1 to 4 times `least_s`.

    p95 at 50/s: 200 requests in 4 s.
    """
    positive("the rate", rate_rps, "Give requests per second")
    positive("the length of a step", least_s, "Give seconds")
    enough_s = 10.0 / (1.0 - bounds.percentile) / rate_rps
    return min(4.0 * least_s, max(least_s, enough_s))


def next_rate(steps: Sequence[LoadStep], bounds: SweepBounds, first_rps: float) -> float | None:
    """Return the rate to try next; None when the sweep is complete.

    Worked: 100, 150, 225 hold, 337 breaks; then 275 (the geometric middle) and 249 or 305.
    """
    if not steps:
        return first_rps
    found = result_of(steps, bounds)
    if len(steps) >= MOST_STEPS:
        return None
    if found.missed_rps is None:
        assert found.met_rps is not None
        rate = min(bounds.max_rate_rps, RISE * found.met_rps)
        return rate if rate > found.met_rps else None
    if found.met_rps is None:
        lower = found.missed_rps / RISE**2
        return lower if len(steps) <= 3 else None
    if found.missed_rps / found.met_rps <= RISE ** (1.001 / 2**REFINEMENTS):
        return None
    return math.sqrt(found.met_rps * found.missed_rps)
