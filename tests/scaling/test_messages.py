"""The decision in words: the sentence, the reason that binds, the counterfactuals."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.scaling import Direction, Reason, ReplicaCounts
from headroom.scaling.explanation import binding, counterfactuals, message
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.values import LimitApplied, Recommendation
from scaling_world import COST, policy

UP, DOWN, NONE = Direction.UP, Direction.DOWN, Direction.NONE


def rule(replicas: int) -> Recommendation:
    return Recommendation(rule=Reason.LATENCY_MODEL, replicas=replicas, detail="9/s")


def limit(reason: Reason, before: int, after: int, detail: str = "") -> LimitApplied:
    return LimitApplied(limit=reason, before=before, after=after, detail=detail)


STABILIZED = limit(Reason.SCALE_DOWN_STABILIZED, 2, 4)
YIELDED = limit(Reason.YIELDED_TO_PRIORITY, 5, 3, "shop/a gets the last accelerators")
SAID: list[tuple[dict[str, Any], str]] = [
    ({}, "4 replicas stay"),
    ({"strongest": rule(4)}, "4 replicas stay; LatencyModel wants 4 (9/s)"),
    (
        {"direction": UP, "replicas": 6, "strongest": rule(6)},
        "4 -> 6 replicas; LatencyModel wants 6 (9/s)",
    ),
    ({"direction": DOWN, "replicas": 3}, "4 -> 3 replicas; no more needed for 60 s"),
    (
        {"direction": DOWN, "replicas": 3, "limits": (YIELDED,)},
        "4 -> 3 replicas; shop/a gets the last accelerators (5 -> 3)",
    ),
    (
        {"limits": (STABILIZED,)},
        "4 replicas stay; fewer would do now, but not for the whole scale-down window yet (2 -> 4)",
    ),
    ({"schedule": "night", "replicas": 1, "current": 1}, "1 replicas stay; schedule night asks"),
    (
        {"schedule": "night", "replicas": 1, "current": 1, "limits": (STABILIZED,)},
        "1 replicas stay; fewer would do now, but not for the whole scale-down window yet (2 -> 4)",
    ),
    ({"schedule": "night"}, "4 replicas stay"),
    (
        {"counts": ReplicaCounts(ready=1, warming=2, late=3, unschedulable=4, broken=5)},
        "4 replicas stay; 1 ready, 2 warming, 3 late, 4 unschedulable, 5 broken",
    ),
    ({"counts": ReplicaCounts(ready=2, broken=1)}, "4 replicas stay; 2 ready, 1 broken"),
    ({"counts": ReplicaCounts(ready=2, terminating=1)}, "4 replicas stay"),
]


@pytest.mark.parametrize(("case", "said"), SAID)
def test_the_sentence(case: dict[str, Any], said: str) -> None:
    found = message(
        policy(schedule=case.get("schedule", "")),
        case.get("direction", NONE),
        case.get("current", 4),
        case.get("replicas", 4),
        case.get("strongest"),
        case.get("limits", ()),
        case.get("counts", ReplicaCounts(ready=4)),
        case.get("held_s", 60.0),
    )
    if said.endswith(" asks"):
        said += " for no fewer"
    assert found == said


@pytest.mark.parametrize(
    ("direction", "strongest", "limits", "counts", "current", "reason"),
    [
        (UP, 5, (), ReplicaCounts(ready=4), 4, Reason.LATENCY_MODEL),
        (UP, 2, (), ReplicaCounts(ready=1), 1, Reason.LATENCY_MODEL),
        (DOWN, 5, (STABILIZED, YIELDED), ReplicaCounts(ready=6), 6, YIELDED.limit),
        (NONE, 5, (), ReplicaCounts(ready=4, warming=1), 5, Reason.REPLICAS_WARMING),
        (NONE, 4, (), ReplicaCounts(ready=4, warming=1), 5, Reason.LATENCY_MODEL),
        (NONE, 5, (), ReplicaCounts(ready=4), 5, Reason.LATENCY_MODEL),
        (DOWN, 5, (), ReplicaCounts(ready=4, warming=1), 6, Reason.LATENCY_MODEL),
        (NONE, 1, (), ReplicaCounts(ready=2), 2, Reason.MIN_REPLICAS),
        (NONE, 2, (), ReplicaCounts(ready=2), 2, Reason.MIN_REPLICAS),
        (NONE, 3, (), ReplicaCounts(ready=3), 3, Reason.LATENCY_MODEL),
        (DOWN, 2, (), ReplicaCounts(ready=5), 5, Reason.MIN_REPLICAS),
        (DOWN, 3, (), ReplicaCounts(ready=5), 5, Reason.LATENCY_MODEL),
        (NONE, None, (), ReplicaCounts(), 2, Reason.WITHIN_TARGET),
        (DOWN, None, (), ReplicaCounts(), 4, Reason.WITHIN_TARGET),
    ],
)
def test_what_binds_at_a_floor_of_two(
    direction: Direction,
    strongest: int | None,
    limits: tuple[LimitApplied, ...],
    counts: ReplicaCounts,
    current: int,
    reason: Reason,
) -> None:
    said = None if strongest is None else rule(strongest)
    assert binding(policy(min_replicas=2), direction, said, limits, counts, current) is reason


@pytest.mark.parametrize(("replicas", "numbers"), [(0, [1]), (1, [1, 2]), (5, [4, 5, 6])])
def test_counterfactuals_are_one_more_and_one_less(replicas: int, numbers: list[int]) -> None:
    tail = TailLatency(cost=COST, percentile=0.95)
    found = counterfactuals(tail, 8.0, replicas)
    assert [one.replicas for one in found] == numbers
    for one in found:
        assert one.utilization == pytest.approx(8.0 / (one.replicas * COST.full_batch_rps))
        assert one.latency_s == tail.latency_s(8.0, one.replicas)
