"""Replicas under a utilization ceiling."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headroom.planner.errors import positive, require

HIGHEST_CEILING = 0.95
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingPlan:
    """Replicas for a rate under a ceiling.

    Worked: 8 slots of 2 s carry 4/s, 3.2/s at a ceiling of 0.8; 50/s need 16 (51.2/s). With 20 %
    headroom: 19 for 60/s, or 20 for 1.2 x 16.
    """

    full_rps: float
    """Throughput of one replica that is always full."""
    usable_rps: float
    """Its throughput under the ceiling."""
    replicas: int
    """For the rate without headroom."""
    with_headroom: int
    """For the rate plus headroom."""
    with_spare_replicas: int
    """The replicas plus headroom: at least as many, since both are rounded up."""

    @property
    def carries_rps(self) -> float:
        """Return the throughput of `replicas` under the ceiling."""
        return self.replicas * self.usable_rps


def check_ceiling(ceiling: float) -> None:
    """Raise ImpossiblePlan unless the ceiling is in (0, 0.95]."""
    require(
        0 < ceiling <= HIGHEST_CEILING,
        f"the utilization ceiling must be above 0 and at most {HIGHEST_CEILING:g}",
        f"{ceiling:g}",
        "Queues grow as 1 / (1 - utilization); 0.7 to 0.8 leaves room for bursts",
    )


def check_headroom(headroom: float) -> None:
    """Raise ImpossiblePlan unless the headroom is in [0, 10]."""
    require(
        0 <= headroom <= 10,
        "the headroom must be between 0 and 10",
        f"{headroom:g}",
        "0.2 plans for 20 % more arrivals",
    )


def replicas_under_ceiling(
    arrival_rps: float, full_rps: float, *, ceiling: float, headroom: float = 0.0
) -> CeilingPlan:
    """Size by utilization alone.

    `headroom` is the share of the arrivals that is planned beyond them, 0.2 for 20 %.

    Raises:
        ImpossiblePlan: a rate, the ceiling or the headroom is outside its range.
    """
    positive("the arrival rate", arrival_rps, "Give requests per second")
    positive("the throughput of one replica", full_rps, "Give its cost or its slots")
    check_ceiling(ceiling)
    check_headroom(headroom)
    usable_rps = ceiling * full_rps
    replicas = rounded_up(arrival_rps / usable_rps)
    return CeilingPlan(
        full_rps=full_rps,
        usable_rps=usable_rps,
        replicas=replicas,
        with_headroom=rounded_up(arrival_rps * (1 + headroom) / usable_rps),
        with_spare_replicas=rounded_up(replicas * (1 + headroom)),
    )


def rounded_up(quotient: float) -> int:
    """Round up to at least 1, ignoring rounding errors of a division."""
    return max(1, math.ceil(quotient - _ROUNDING))
