"""The decision as text: the message, the binding reason, the counterfactuals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from headroom.scaling import (
    Direction,
    Freshness,
    PodSample,
    Reason,
    ReplicaCounts,
    Signal,
    Signals,
    decide,
)
from headroom.scaling.explanation.decision_message import gap_to_model, message
from headroom.scaling.explanation.explanation import binding, counterfactuals
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.rules.rate_rules import for_latency
from headroom.scaling.values.decision import Decision, LimitApplied, Recommendation
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.signals import MISSING
from headroom.scaling.values.time_text import format_seconds
from headroom.scaling.values.tokens import Target, TokenTargets
from support.fakes_scaling import BOUNDS_S, COST, Service, policy

UP, DOWN, NONE = Direction.UP, Direction.DOWN, Direction.NONE


def fresh(value: float) -> Signal:
    return Signal(freshness=Freshness.FRESH, value=value)


def rule(replicas: int) -> Recommendation:
    return Recommendation(rule=Reason.LATENCY_MODEL, replicas=replicas, detail="9/s")


def limit(reason: Reason, before: int, after: int, detail: str = "") -> LimitApplied:
    return LimitApplied(limit=reason, before=before, after=after, detail=detail)


def _decision(
    *, direction: Direction, current: int = 4, strongest: Recommendation | None = None, **also: Any
) -> Decision:
    return Decision(
        time_s=0.0,
        current=current,
        reason=Reason.WITHIN_TARGET,
        message="",
        direction=direction,
        recommendations=() if strongest is None else (strongest,),
        **{"replicas": current} | also,
    )


HELD = "fewer have not been enough for the whole scale-down window (4 instead of 2)"
STABILIZED = limit(Reason.SCALE_DOWN_STABILIZED, 2, 4)
YIELDED = limit(Reason.YIELDED_TO_PRIORITY, 5, 3, "shop/a gets the last accelerators")
MESSAGES: list[tuple[dict[str, Any], str]] = [
    ({}, "4 replicas kept"),
    ({"strongest": rule(4)}, "4 replicas kept; LatencyModel needs 4 (9/s)"),
    (
        {"direction": UP, "replicas": 6, "strongest": rule(6)},
        "4 -> 6 replicas; LatencyModel needs 6 (9/s)",
    ),
    ({"direction": DOWN, "replicas": 3}, "4 -> 3 replicas; no more were needed for 60s"),
    (
        {"direction": DOWN, "replicas": 3, "limits": (YIELDED,)},
        "4 -> 3 replicas; shop/a gets the last accelerators (3 instead of 5)",
    ),
    (
        {"limits": (STABILIZED,)},
        f"4 replicas kept; {HELD}",
    ),
    (
        {"schedule": "night", "replicas": 1, "current": 1},
        "1 replica kept; schedule night requires at least 1",
    ),
    (
        {"schedule": "night", "replicas": 1, "current": 1, "limits": (STABILIZED,)},
        f"1 replica kept; {HELD}",
    ),
    (
        {"limits": (limit(Reason.COST_UNKNOWN, 1, 4),)},
        (
            "4 replicas kept; the cost of a request is not known yet, so no replica is removed "
            "(4 instead of 1)"
        ),
    ),
    ({"schedule": "night"}, "4 replicas kept"),
    (
        {"counts": ReplicaCounts(ready=1, warming=2, late=3, unschedulable=4, broken=5)},
        "4 replicas kept; 1 ready, 2 warming, 3 late, 4 unschedulable, 5 broken",
    ),
    ({"counts": ReplicaCounts(ready=2, broken=1)}, "4 replicas kept; 2 ready, 1 broken"),
    ({"counts": ReplicaCounts(ready=2, terminating=1)}, "4 replicas kept"),
]


@pytest.mark.parametrize(("case", "expected"), MESSAGES)
def test_message_names_change_rule_and_limits(case: dict[str, Any], expected: str) -> None:
    usual: dict[str, Any] = {"direction": NONE, "counts": ReplicaCounts(ready=4)}
    schedule = case.get("schedule", "")
    decided = _decision(**usual | {name: case[name] for name in case if name != "schedule"})
    assert message(policy(schedule=schedule), decided, 60.0) == expected


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
def test_binding_reason_at_a_floor_of_two(
    direction: Direction,
    strongest: int | None,
    limits: tuple[LimitApplied, ...],
    counts: ReplicaCounts,
    current: int,
    reason: Reason,
) -> None:
    expected = None if strongest is None else rule(strongest)
    decided = _decision(
        direction=direction, strongest=expected, limits=limits, counts=counts, current=current
    )
    assert binding(policy(min_replicas=2), decided) is reason


@pytest.mark.parametrize(("replicas", "numbers"), [(0, [1]), (1, [1, 2]), (5, [4, 5, 6])])
def test_counterfactuals_cover_one_less_and_one_more(replicas: int, numbers: list[int]) -> None:
    tail = TailLatency(cost=COST, percentile=0.95)
    found = counterfactuals(tail, 8.0, replicas)
    assert [one.replicas for one in found] == numbers
    for one in found:
        assert one.utilization == pytest.approx(8.0 / (one.replicas * COST.full_batch_rps))
        assert one.latency_s == tail.latency_s(8.0, one.replicas)


@pytest.mark.parametrize(
    ("rate_rps", "measured", "ready", "text"),
    [
        (8.0, fresh(2.0), 2, "p95 is 2s, the model expects 534ms at 2 ready"),
        (8.0, fresh(math.inf), 2, "p95 is unbounded, the model expects"),
        (8.0, fresh(1.5), 2, ""),  # within the target
        (8.0, Signal(freshness=Freshness.STALE, value=2.0), 2, ""),
        (8.0, MISSING, 2, ""),
        (25.0, fresh(2.0), 2, ""),  # the model expects it too
        (8.0, fresh(2.0), 0, ""),
        (None, fresh(2.0), 2, ""),
    ],
)
def test_gap_to_model_is_reported_only_where_the_model_expects_the_target_to_be_met(
    rate_rps: float | None, measured: Signal, ready: int, text: str
) -> None:
    rate = MISSING if rate_rps is None else fresh(rate_rps)
    signals = Signals(arrival_rps=rate, latency_s=measured)
    tail = TailLatency(cost=COST, percentile=0.95)
    found = gap_to_model(policy(), signals, tail, ready, 1.25)
    assert found.startswith(text)
    assert found.endswith("(learned latency correction 1.25)") == bool(text)
    assert (found == "") == (text == "")


@pytest.mark.parametrize(
    ("target_s", "text"),
    [
        (1.5, "with p95 within 1.5s"),
        (0.9, "with p95 within 900ms (target 1.5s / learned latency correction 1.67)"),
    ],
)
def test_latency_rule_with_a_correction_names_it(target_s: float, text: str) -> None:
    found = for_latency(policy(), TailLatency(cost=COST, percentile=0.95), 8.0, target_s)
    assert found is not None
    assert found.detail.endswith(text)


def test_latency_rule_names_no_percentile_that_is_not_promised() -> None:
    tokens = TokenTargets(output_token=Target(percentile=0.95, seconds=0.1))
    derived = policy(latency_target_s=100.0, token_targets=tokens)
    found = for_latency(derived, TailLatency(cost=COST, percentile=0.95), 8.0, 100.0)
    assert found is not None
    assert found.detail.endswith("whole answers within 100s, which follows from the token SLOs")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0123, "12.3ms"), (0.9994, "999ms"), (0.9996, "1s"), (2.5, "2.5s"), (math.inf, "unbounded")],
)
def test_format_seconds_chooses_the_unit(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


def _buckets(sample: PodSample) -> Iterator[tuple[float, float]]:
    return zip(sample.latency.bounds_s, sample.latency.counts, strict=True)


def test_message_while_replicas_suffice_and_latency_is_missed_names_the_gap() -> None:
    service = Service(rate_rps=8.0, replicas=2, policy=policy(min_replicas=2))
    service.run(60)
    service.now_s += 2.0
    seen, slow = service.observe(), []
    for one in seen.samples:  # 8 requests each, and 100 more were answered within 2 to 4 s
        counts = [count + (100.0 if bound >= 4.0 else 0.0) for bound, count in _buckets(one)]
        latency = LatencyCounts(bounds_s=BOUNDS_S, counts=tuple(counts))
        slow.append(replace(one, arrivals=one.arrivals + 8.0, latency=latency))
    decision, _ = decide(service.policy, service.state, replace(seen, samples=tuple(slow)))
    assert decision.direction is NONE
    assert "the model expects 534ms at 2 ready (learned latency correction" in decision.message
