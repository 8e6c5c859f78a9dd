"""Each limit on inputs made by hand; rate limits are in test_rate_limits.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fakes_scaling import policy
from headroom.scaling import (
    Allocation,
    Freshness,
    Observation,
    Reason,
    ReplicaCounts,
    Signal,
    State,
)
from headroom.scaling.limits.bounds import apply_allocation, apply_bounds
from headroom.scaling.limits.cold_start import ColdStarts
from headroom.scaling.limits.flaps import Flaps
from headroom.scaling.limits.limit_input import DesiredReplicas, LimitInput
from headroom.scaling.limits.scale_down import limit_decrease
from headroom.scaling.limits.scale_up import limit_increase
from headroom.scaling.limits.stabilization import Coverage, SlidingExtreme
from headroom.scaling.values.policy import RateLimit
from headroom.scaling.values.signals import Signals

NOW_S = 1000.0


def signal(freshness: Freshness) -> Signal:
    if freshness is Freshness.MISSING:
        return Signal(freshness=freshness)
    return Signal(freshness=freshness, value=1.0, age_s=0.0)


def limit_input(
    desired: int,
    current: int,
    *,
    freshness: Freshness = Freshness.FRESH,
    counts: ReplicaCounts | None = None,
    by_arrivals: int = 0,
    by_ceiling: int = 0,
    known: bool = True,
    rolling: bool = False,
    allocation: Allocation | None = None,
    needed: tuple[tuple[float, int], ...] = (),
    arrivals: tuple[tuple[float, int], ...] | None = None,
    lowest: tuple[tuple[float, int], ...] = (),
    watched_s: float = 1e6,
    state: dict[str, Any] | None = None,
    **limits: Any,
) -> LimitInput:
    known_signals = Signals(arrival_rps=signal(freshness), waiting=signal(freshness))
    return LimitInput(
        policy=policy(**{"max_replicas": 100, **limits}),
        state=replace(
            State.initial(),
            coverage=Coverage(since_s=NOW_S - watched_s, until_s=NOW_S),
            needed_high=SlidingExtreme(keep="largest", entries=needed),
            arrivals_high=SlidingExtreme(
                keep="largest", entries=needed if arrivals is None else arrivals
            ),
            desired_low=SlidingExtreme(keep="smallest", entries=lowest),
            **{"cold_starts": ColdStarts(seconds=(10.0,)), **(state or {})},
        ),
        observation=Observation(
            now_s=NOW_S, current=current, rolling=rolling, allocation=allocation
        ),
        signals=known_signals,
        counts=counts or ReplicaCounts(ready=current),
        desired=DesiredReplicas(replicas=desired, by_arrivals=by_arrivals, by_ceiling=by_ceiling),
        known=known,
        now_s=NOW_S,
    )


def outcome(limited: tuple[int, Any]) -> tuple[int, list[Reason]]:
    replicas, applied = limited
    return replicas, [limit.limit for limit in applied]


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
    ("starts_s", "needed", "watched_s", "replicas"),
    [
        ((10.0,), ((940.0, 6), (950.0, 4)), 1e6, 6),  # the hold alone: 60 s
        ((10.0,), ((939.0, 6), (950.0, 4)), 1e6, 4),
        ((), ((820.0, 6), (950.0, 4)), 1e6, 6),  # no start was measured: three times the hold
        ((), ((819.0, 6), (950.0, 4)), 1e6, 4),
        ((20.0,), ((939.0, 6), (950.0, 4)), 1e6, 4),  # shorter than the hold
        ((120.0,), ((880.0, 6), (950.0, 4)), 1e6, 6),  # what is back after 120 s is kept for 120 s
        ((120.0,), ((879.0, 6), (950.0, 4)), 1e6, 4),
        ((120.0,), ((950.0, 4),), 119.0, 6),  # not watched for as long
        ((120.0,), ((950.0, 4),), 120.0, 4),
    ],
)
def test_hold_is_at_least_a_cold_start(
    starts_s: tuple[float, ...],
    needed: tuple[tuple[float, int], ...],
    watched_s: float,
    replicas: int,
) -> None:
    state = {"cold_starts": ColdStarts(seconds=starts_s)}
    found = limit_input(3, 6, needed=needed, watched_s=watched_s, state=state)
    assert limit_decrease(found)[0] == replicas


FLAPPED = Flaps(recent=((900.0, 5),))
"""Up to five are kept four times as long."""


@pytest.mark.parametrize(
    ("needed", "replicas"),
    [
        (((759.0, 6), (760.0, 5), (990.0, 3)), 5),  # 240 s ago: it is the beginning of the hold
        (((759.0, 6), (761.0, 4), (990.0, 3)), 4),
        (((900.0, 6), (940.0, 3)), 5),  # no more than flapped
        ((), 6),
    ],
)
def test_flap_level_is_kept_for_four_times_the_hold(
    needed: tuple[tuple[float, int], ...], replicas: int
) -> None:
    found = limit_input(3, 6, needed=needed, state={"flaps": FLAPPED})
    assert limit_decrease(found)[0] == replicas


def test_what_a_queue_needed_is_kept_for_the_usual_hold_only() -> None:
    """It was worked off once; what arrivals needed may come back."""
    queued, arrivals = ((800.0, 6), (990.0, 3)), ((800.0, 4), (990.0, 3))
    found = limit_input(3, 6, needed=queued, arrivals=arrivals, state={"flaps": FLAPPED})
    assert limit_decrease(found)[0] == 4
    found = limit_input(3, 6, needed=((950.0, 6),), arrivals=arrivals, state={"flaps": FLAPPED})
    assert limit_decrease(found)[0] == 6


@pytest.mark.parametrize(
    ("needed", "replicas"),
    [
        (((700.0, 6), (990.0, 1)), 3),  # 300 s ago: only three flapped twice
        (((770.0, 6), (990.0, 1)), 5),
        (((30.0, 6), (990.0, 1)), 1),
        (((770.0, 4), (990.0, 1)), 4),
    ],
)
def test_replica_is_kept_for_the_flaps_that_it_took_part_in(
    needed: tuple[tuple[float, int], ...], replicas: int
) -> None:
    flaps = Flaps(recent=((500.0, 3), (900.0, 5)))
    found = limit_input(1, 6, needed=needed, watched_s=990.0, state={"flaps": flaps})
    assert limit_decrease(found)[0] == replicas


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


@pytest.mark.parametrize(
    ("flaps", "kept"),
    [(3, 3), (4, 5), (6, 5)],
    ids=["three flaps: a queue is worked off", "four flaps: it comes again", "six flaps"],
)
def test_what_a_queue_needed_four_times_in_an_hour_is_kept(flaps: int, kept: int) -> None:
    recent = tuple((NOW_S - 100.0 * (number + 1), 5) for number in range(flaps))[::-1]
    arrivals = ((990.0, 3),)
    found = limit_input(
        3, 6, needed=((990.0, 3),), arrivals=arrivals, state={"flaps": Flaps(recent=recent)}
    )
    assert limit_decrease(found)[0] == kept
