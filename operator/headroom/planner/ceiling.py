"""Capacity under a utilization ceiling: what an instance may carry, and how many that takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headroom.planner.errors import positive, require

HIGHEST_CEILING = 0.95
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingPlan:
    """Instances for a rate under a ceiling.

    Worked: 8 slots of 2 s carry 4/s, 3.2/s at a ceiling of 0.8; 50/s take 16 (51.2/s). Room for
    20 % more: 19 for 60/s, or 20 for 1.2 x 16.
    """

    full_rps: float
    """What one instance carries when it is always full."""
    usable_rps: float
    """The same under the ceiling."""
    replicas: int
    """For the rate as it is."""
    with_headroom: int
    """For a rate that much higher."""
    with_spare_replicas: int
    """That share of the replicas on top: at least as many, since both are rounded up."""

    @property
    def carries_rps(self) -> float:
        """What the replicas for the rate as it is carry under the ceiling."""
        return self.replicas * self.usable_rps


def check_ceiling(ceiling: float) -> None:
    """Raise ImpossiblePlan unless the ceiling lies in (0, 0.95]."""
    require(
        0 < ceiling <= HIGHEST_CEILING,
        f"the utilization ceiling lies in (0, {HIGHEST_CEILING:g}]",
        f"{ceiling:g}",
        "queues grow as 1 / (1 - utilization); 0.7 to 0.8 leaves room for what is not smooth",
    )


def check_headroom(headroom: float) -> None:
    """Raise ImpossiblePlan unless the extra share lies in [0, 10]."""
    require(
        0 <= headroom <= 10,
        "headroom is a share of the arrivals from 0 to 10",
        f"{headroom:g}",
        "0.2 plans for a fifth more than arrives",
    )


def replicas_under_ceiling(
    arrival_rps: float, full_rps: float, *, ceiling: float, headroom: float = 0.0
) -> CeilingPlan:
    """Size by utilization alone. Raises ImpossiblePlan for rates and ceilings that cannot be."""
    positive("the arrival rate", arrival_rps, "give requests per second")
    positive("the throughput of one instance", full_rps, "give its cost or its slots")
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
    """Round up, at least 1, forgiving the last bits of a division."""
    return max(1, math.ceil(quotient - _ROUNDING))
