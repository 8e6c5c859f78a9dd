"""Each limit on inputs made by hand; rate limits are in test_rate_limits.py."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.scaling import (
    Allocation,
    Freshness,
    Reason,
    ReplicaCounts,
)
from headroom.scaling.limits.bounds import apply_allocation, apply_bounds
from headroom.scaling.limits.scale_down import limit_decrease
from headroom.scaling.limits.scale_up import limit_increase
from headroom.scaling.values.policy import RateLimit
from scaling.limits.limit_inputs import limit_input, outcome
from support.fakes_scaling import policy


@pytest.mark.parametrize(
    ("case", "replicas", "limits"),
    [
        ({}, 9, []),
        ({"lowest": ((900.0, 6),)}, 9, []),  # no window is set
        ({"scale_up_stabilization_s": 30.0, "lowest": ((970.0, 6),)}, 6, ["ScaleUpStabilized"]),
        ({"scale_up_stabilization_s": 30.0, "lowest": ((970.0, 9),)}, 9, []),
        ({"scale_up_stabilization_s": 1.0, "lowest": ((970.0, 6),)}, 6, ["ScaleUpStabilized"]),
        (  # the window is not covered yet: the current number
            {"scale_up_stabilization_s": 30.0, "lowest": ((975.0, 6),), "watched_s": 29.0},
            4,
            ["ScaleUpStabilized"],
        ),
        (
            {"scale_up_stabilization_s": 30.0, "lowest": ((975.0, 6),), "watched_s": 30.0},
            6,
            ["ScaleUpStabilized"],
        ),
        (
            {"scale_up_stabilization_s": 30.0, "lowest": ((970.0, 6),), "by_ceiling": 8},
            8,
            ["ScaleUpStabilized"],
        ),
        ({"scale_up_rate": RateLimit(period_s=60.0, replicas=2)}, 6, ["RateLimited"]),
        (
            {"scale_up_rate": RateLimit(period_s=60.0, replicas=2), "by_ceiling": 7},
            7,
            ["RateLimited"],
        ),
        ({"counts": ReplicaCounts(ready=2, broken=2), "by_arrivals": 6}, 9, []),
        (
            {"counts": ReplicaCounts(ready=1, broken=2), "by_arrivals": 6},
            4,
            ["CapacityShortage"],
        ),
        (
            {"counts": ReplicaCounts(ready=3, unschedulable=1), "by_arrivals": 6},
            6,
            ["CapacityShortage"],
        ),
        (
            {"counts": ReplicaCounts(ready=3, unschedulable=1), "by_arrivals": 2},
            4,
            ["CapacityShortage"],
        ),
        (
            {"allocation": Allocation(replicas=9, preempted_by="x"), "by_arrivals": 6},
            6,
            ["CapacityShortage"],
        ),
        (
            {
                "scale_up_rate": RateLimit(period_s=60.0, replicas=3),
                "counts": ReplicaCounts(ready=3, unschedulable=1),
                "by_arrivals": 5,
            },
            5,
            ["RateLimited", "CapacityShortage"],
        ),
    ],
)
def test_increase_from_four_with_nine_desired_stops_at_the_first_limit(
    case: dict[str, Any], replicas: int, limits: list[str]
) -> None:
    assert outcome(limit_increase(limit_input(9, 4, **case))) == (replicas, limits)


def test_increase_from_zero_is_stabilized_unless_the_ceiling_needs_a_replica() -> None:
    for by_ceiling in (0, 1):
        given = limit_input(2, 0, scale_up_stabilization_s=30.0, by_ceiling=by_ceiling)
        assert outcome(limit_increase(given)) == (by_ceiling, ["ScaleUpStabilized"])


@pytest.mark.parametrize(
    ("case", "replicas", "limits"),
    [
        ({"needed": ((940.0, 3),)}, 3, []),
        # the most of the last minute, its first instant included
        ({"needed": ((940.0, 5), (990.0, 3))}, 5, ["ScaleDownStabilized"]),
        ({"needed": ((939.0, 5), (940.0, 4), (990.0, 3))}, 4, ["ScaleDownStabilized"]),
        ({"needed": ((1000.0, 5),)}, 5, ["ScaleDownMargin"]),  # now, and more than desired
        ({"needed": ((939.0, 5), (990.0, 3))}, 3, []),
        ({"needed": ((940.0, 2),), "min_replicas": 4}, 4, []),
        ({}, 6, ["ScaleDownStabilized"]),  # nothing remembered
        ({"needed": ((940.0, 6), (990.0, 3))}, 6, ["ScaleDownStabilized"]),
        ({"needed": ((940.0, 8), (990.0, 3))}, 6, ["ScaleDownStabilized"]),
        ({"needed": ((1000.0, 6),)}, 6, ["ScaleDownMargin"]),  # now, and more than desired
        ({"needed": ((1000.0, 7),)}, 6, ["ScaleDownMargin"]),
        ({"needed": ((940.0, 7), (1000.0, 5))}, 6, ["ScaleDownStabilized"]),
        ({"freshness": Freshness.MISSING}, 6, ["MetricsMissing"]),
        ({"freshness": Freshness.STALE}, 6, ["MetricsStale"]),
        ({"rolling": True, "known": False}, 6, ["RollingOut"]),
        ({"known": False, "watched_s": 0.0}, 6, ["CostUnknown"]),
        ({"watched_s": 59.0, "needed": ((940.0, 3),)}, 6, ["InsufficientHistory"]),
        ({"watched_s": 60.0, "needed": ((940.0, 3),)}, 3, []),
        (
            {
                "needed": ((940.0, 3),),
                "scale_down_rate": RateLimit(period_s=60.0, replicas=2),
            },
            4,
            ["RateLimited"],
        ),
        (
            {
                "needed": ((940.0, 3),),
                "scale_down_rate": RateLimit(period_s=60.0, replicas=3),
            },
            3,
            [],
        ),
        (
            {
                "needed": ((940.0, 4), (990.0, 3)),
                "scale_down_rate": RateLimit(period_s=60.0, replicas=1),
            },
            5,
            ["ScaleDownStabilized", "RateLimited"],
        ),
        (  # 8 at the start of the period: four of them may go, two have gone
            {
                "needed": ((940.0, 2),),
                "scale_down_rate": RateLimit(period_s=60.0, replicas=4),
                "state": {"changes": ((900.0, 8), (960.0, 6))},
            },
            4,
            ["RateLimited"],
        ),
        (  # 12 at its start: a rate never adds replicas
            {
                "needed": ((940.0, 2),),
                "scale_down_rate": RateLimit(period_s=60.0, replicas=5),
                "state": {"changes": ((900.0, 12), (960.0, 6))},
            },
            6,
            ["RateLimited"],
        ),
    ],
)
def test_decrease_from_six_with_three_desired_names_each_limit(
    case: dict[str, Any], replicas: int, limits: list[str]
) -> None:
    assert outcome(limit_decrease(limit_input(3, 6, **case))) == (
        replicas,
        limits,
    )


@pytest.mark.parametrize(
    ("allocation", "replicas", "left"),
    [(None, 5, 5), (5, 5, 5), (4, 5, 4), (0, 5, 2), (9, 5, 5), (7, 9, 7), (8, 9, 9), (8, 8, 8)],
)
def test_allocation_below_the_number_cuts_it(
    allocation: int | None, replicas: int, left: int
) -> None:
    found = limit_input(
        5,
        5,
        allocation=None
        if allocation is None
        else Allocation(replicas=allocation, preempted_by="shop/ranker"),
        min_replicas=2,
        max_replicas=8,
    )
    number, applied = apply_allocation(found, replicas)
    assert number == left
    recorded = [(one.limit, one.before, one.after, one.detail) for one in applied]
    to = "shop/ranker gets the last accelerators"
    cut = (Reason.YIELDED_TO_PRIORITY, min(replicas, 8), left, to)
    assert recorded == ([] if left == replicas else [cut])


@pytest.mark.parametrize(
    ("replicas", "bounded", "reason"),
    [
        (8, 8, None),
        (9, 8, Reason.MAX_REPLICAS),
        (2, 2, None),
        (1, 2, Reason.MIN_REPLICAS),
    ],
)
def test_bounds_clamp_the_number_and_name_the_limit(
    replicas: int, bounded: int, reason: Reason | None
) -> None:
    number, applied = apply_bounds(
        policy(min_replicas=2, max_replicas=8, schedule="night"), replicas
    )
    assert number == bounded
    assert [one.limit for one in applied] == ([reason] if reason else [])
    assert all((one.before, one.after) == (replicas, bounded) for one in applied)
    details = {one.detail for one in applied if one.limit is Reason.MIN_REPLICAS}
    assert details <= {"schedule night requires at least 2"}
