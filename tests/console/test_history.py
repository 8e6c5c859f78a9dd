"""History of an hour: its samples, its decisions, its cost and its size."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from headroom.console.history import DECISIONS, EVERY_S, SAMPLES, History
from headroom.scaling import (
    Decision,
    Demand,
    DemandKnown,
    Direction,
    Freshness,
    Reason,
    ReplicaCounts,
    Signal,
    Signals,
)
from support.fakes_scaling import policy

POLICY = policy()


def signal(value: float | None) -> Signal:
    if value is None:
        return Signal(freshness=Freshness.MISSING)
    return Signal(freshness=Freshness.FRESH, value=value)


def decision(
    time_s: float, replicas: int = 2, *, current: int | None = None, **seen: Any
) -> Decision:
    counts = seen.pop("counts", ReplicaCounts(ready=replicas))
    signals = Signals()
    for name, value in seen.items():
        signals = replace(signals, **{name: signal(value)})  # type: ignore[arg-type]
    return Decision(
        time_s=time_s,
        current=replicas if current is None else current,
        replicas=replicas,
        direction=Direction.NONE,
        reason=Reason.BURST,
        message="m" * 1000,
        signals=signals,
        counts=counts,
    )


def history(*decisions: Decision, accelerators: int = 1) -> History:
    made = History()
    for each in decisions:
        made.take(POLICY, each, accelerators)
    return made


def test_sample_has_what_is_known_of_the_demand() -> None:
    known = (DemandKnown.EXACT, DemandKnown.AT_LEAST, DemandKnown.INCLUDES_RETRIES)
    series = history(
        *(
            replace(decision(100.0 + 20.0 * index), demand=Demand(known=one))
            for index, one in enumerate(known)
        )
    ).series()
    assert series["bound"].tolist() == [0.0, 1.0, -1.0]


def test_sample_has_worst_latency_and_queue_and_last_values() -> None:
    series = history(
        decision(100.0, 2, latency_s=0.3, waiting=9.0, arrival_rps=5.0),
        decision(102.0, 3, latency_s=0.9, waiting=2.0, arrival_rps=7.0),
        decision(119.0, 4, latency_s=None, waiting=0.0, arrival_rps=6.0),
        decision(120.0, 4, latency_s=0.1, waiting=0.0, arrival_rps=4.0),
    ).series()
    assert series.times_s.tolist() == [100.0, 120.0]
    assert series["latency_s"].tolist() == pytest.approx([0.9, 0.1])
    assert series["waiting"].tolist() == [9.0, 0.0]
    assert series["arrivals_rps"].tolist() == [6.0, 4.0]
    assert series["desired"].tolist() == [4.0, 4.0]


def test_sample_of_unknown_value_is_nan_and_unbounded_is_infinite() -> None:
    series = history(decision(0.0), decision(20.0, latency_s=math.inf)).series()
    assert math.isnan(series["arrivals_rps"][0])
    assert math.isinf(series["latency_s"][1])


def test_ring_keeps_an_hour_in_order() -> None:
    made = History()
    for index in range(3 * SAMPLES + 7):
        made.take(POLICY, decision(index * EVERY_S, arrival_rps=float(index)), 1)
    series = made.series()
    assert len(series.times_s) == SAMPLES
    assert series["arrivals_rps"].tolist() == [float(2 * SAMPLES + 7 + n) for n in range(SAMPLES)]


def test_clock_going_back_starts_no_sample() -> None:
    series = history(decision(100.0), decision(40.0), decision(41.0)).series()
    assert series.times_s.tolist() == [100.0]


def test_decisions_that_change_replicas_are_kept_once_and_bounded() -> None:
    held = [decision(2.0 * n, 5, current=3) for n in range(5)]
    (only,) = history(*held).moves
    assert (only.before, only.after, len(only.message)) == (3, 5, 300)
    many = history(*(decision(2.0 * n, 1 + n % 2, current=2 - n % 2) for n in range(200)))
    assert len(many.moves) == DECISIONS
    assert many.moves[-1].time_s == 398.0


def test_cost_counts_accelerators_of_present_replicas() -> None:
    counts = ReplicaCounts(ready=2, warming=1, terminating=1, unschedulable=5)
    ticks = [decision(2.0 * n, 3, counts=counts) for n in range(1801)]
    cost = history(*ticks, accelerators=2).cost
    assert cost is not None
    # 4 replicas of 2 accelerators for an hour; the five without a node hold none.
    assert cost.peak == 8
    assert (cost.hours, cost.peak_hours) == pytest.approx((8.0, 8.0))


def test_gap_adds_no_cost() -> None:
    cost = history(decision(0.0), decision(2.0), decision(5000.0)).cost
    assert cost is not None
    assert cost.watched_s == 2.0
    assert cost.peak_hours == pytest.approx(2 * 2.0 / 3600)


def test_history_memory_is_within_stated_bound() -> None:
    made = history(decision(0.0))
    assert made._values.nbytes + made._times_s.nbytes < 22_000
