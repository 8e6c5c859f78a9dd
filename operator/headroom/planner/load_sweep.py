"""An open-loop sweep of rising rates: which rate comes next, and what the sweep has shown.

The measuring itself is handed in, step by step. Rates rise by half until a step breaks the promise,
then the gap between the last that held and the first that broke is halved a few times.
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
"""Of what one request at a time would carry, or of what the server says that it carries."""


class LoadStep(Protocol):
    """What one rate of the sweep showed. An adapter's values fit by structure."""

    @property
    def rate_rps(self) -> float:
        """Requests sent per second, as they were due."""

    @property
    def latencies_s(self) -> Sequence[float]:
        """Of right answers, from the instant at which each was due."""

    @property
    def missed(self) -> int:
        """Refused, failed, lost or too late to be waited for."""

    @property
    def batches(self) -> float | None:
        """Batches that the server says it ran meanwhile; None where it does not say."""

    @property
    def batch_items(self) -> float | None:
        """Items in them."""

    @property
    def batch_seconds(self) -> float | None:
        """Time that they took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepBounds:
    """The promise that a sweep looks for, and how far it may go."""

    target_s: float
    percentile: float = 0.95
    max_rate_rps: float = 1000.0

    def __post_init__(self) -> None:
        """Raise ImpossiblePlan for bounds that cannot be."""
        positive("the latency target", self.target_s, "give what a request may take")
        share("the percentile", self.percentile, "give one such as 0.95")
        positive("the highest rate", self.max_rate_rps, "give requests per second")


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResult:
    """Between which rates the promise breaks."""

    held_rps: float | None
    """The highest rate that held, below any that broke; None if the first broke."""
    broke_rps: float | None
    """The lowest rate that broke; None if none did: capacity is higher than was tried."""


def latency_of(step: LoadStep, percentile: float) -> float:
    """Percentile over all requests of a step; a miss took forever. inf if the rank is a miss."""
    total = len(step.latencies_s) + step.missed
    require(total > 0, "a step has requests", 0, "measure longer")
    rank = max(1, math.ceil(percentile * total - 1e-9))
    if rank > len(step.latencies_s):
        return math.inf
    return sorted(step.latencies_s)[rank - 1]


def held(step: LoadStep, bounds: SweepBounds) -> bool:
    """Whether the step kept the promise."""
    return latency_of(step, bounds.percentile) <= bounds.target_s


def result_of(steps: Sequence[LoadStep], bounds: SweepBounds) -> SweepResult:
    """Bracket the capacity. A rate counts as held only below the lowest that broke."""
    broke = min((one.rate_rps for one in steps if not held(one, bounds)), default=None)
    fine = [
        one.rate_rps
        for one in steps
        if held(one, bounds) and (broke is None or one.rate_rps < broke)
    ]
    return SweepResult(held_rps=max(fine, default=None), broke_rps=broke)


def first_rate(idle_s: float, said_rps: float | None, bounds: SweepBounds) -> float:
    """Begin well below what the server says that it carries, or else one at a time."""
    positive("the latency of a single request", idle_s, "measure at least one answer")
    return min(bounds.max_rate_rps, FIRST_SHARE * (said_rps or 1.0 / idle_s))


def step_seconds(rate_rps: float, bounds: SweepBounds, least_s: float) -> float:
    """Return how long to hold a rate: until ten requests may miss, within 1 to 4 times `least_s`.

    p95 at 50/s: 200 requests in 4 s.
    """
    positive("the rate", rate_rps, "give requests per second")
    positive("the length of a step", least_s, "give seconds")
    enough_s = 10.0 / (1.0 - bounds.percentile) / rate_rps
    return min(4.0 * least_s, max(least_s, enough_s))


def next_rate(steps: Sequence[LoadStep], bounds: SweepBounds, first_rps: float) -> float | None:
    """Return the rate to try next; None when the sweep has shown what it can.

    Worked: 100, 150, 225 hold, 337 breaks; then 275 (the geometric middle) and 249 or 305.
    """
    if not steps:
        return first_rps
    found = result_of(steps, bounds)
    if len(steps) >= MOST_STEPS:
        return None
    if found.broke_rps is None:
        assert found.held_rps is not None
        rate = min(bounds.max_rate_rps, RISE * found.held_rps)
        return rate if rate > found.held_rps else None
    if found.held_rps is None:
        lower = found.broke_rps / RISE**2
        return lower if len(steps) <= 3 else None
    if found.broke_rps / found.held_rps <= RISE ** (1.001 / 2**REFINEMENTS):
        return None
    return math.sqrt(found.held_rps * found.broke_rps)
