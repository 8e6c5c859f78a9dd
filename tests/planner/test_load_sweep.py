"""The sweep on modelled servers: its rates, its result, its fitted cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planner.cost_from_load import CostSource, cost_of
from headroom.planner.errors import ImpossiblePlan
from headroom.planner.load_sweep import (
    MOST_STEPS,
    RISE,
    SweepBounds,
    first_rate,
    latency_of,
    next_rate,
    result_of,
    step_seconds,
)
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.values.observation import CostModel

BOUNDS = SweepBounds(target_s=0.1, percentile=0.95, max_rate_rps=2000)


@dataclass(frozen=True, kw_only=True)
class Step:
    rate_rps: float
    latencies_s: Sequence[float] = ()
    missed: int = 0
    batches: float | None = None
    batch_items: float | None = None
    batch_seconds: float | None = None


def fine(rate_rps: float) -> Step:
    return Step(rate_rps=rate_rps, latencies_s=[0.05] * 100)


def broken(rate_rps: float) -> Step:
    return Step(rate_rps=rate_rps, latencies_s=[0.05] * 94, missed=6)


@pytest.mark.parametrize(
    ("latencies", "missed", "percentile", "latency_s"),
    [
        ([0.1, 0.2, 0.3, 0.4], 0, 0.5, 0.2),
        ([0.4, 0.3, 0.2, 0.1], 0, 0.95, 0.4),
        ([0.1] * 95, 5, 0.95, 0.1),
        ([0.1] * 94, 6, 0.95, math.inf),
        ([], 3, 0.5, math.inf),
    ],
)
def test_latency_of_miss_is_infinite(
    latencies: list[float], missed: int, percentile: float, latency_s: float
) -> None:
    step = Step(rate_rps=1, latencies_s=latencies, missed=missed)
    assert latency_of(step, percentile) == latency_s


@pytest.mark.parametrize(
    ("steps", "tried"),
    [
        ([], 100),
        ([fine(100)], 150),
        ([fine(100), fine(150), broken(225)], math.sqrt(150 * 225)),
        ([fine(100), broken(150), fine(122.47)], math.sqrt(122.47 * 150)),
        ([fine(100), broken(150), fine(122.47), broken(135.5)], None),
        ([broken(100)], 100 / RISE**2),
        ([broken(100), fine(44.4)], math.sqrt(44.4 * 100)),
        ([broken(100), broken(44.4), broken(19.8), broken(8.8)], None),
        ([fine(1500)], 2000),
        ([fine(2000)], None),
        ([fine(1 + number) for number in range(MOST_STEPS)], None),
    ],
    ids=[
        "begins at the given rate",
        "rises by half",
        "halves the gap",
        "halves it again",
        "ends when the gap is small",
        "goes down when the first breaks",
        "and comes up again",
        "gives up when nothing holds",
        "tries the highest rate",
        "and ends there",
        "ends in any case",
    ],
)
def test_next_rate_follows_the_steps(steps: list[Step], tried: float | None) -> None:
    assert next_rate(steps, BOUNDS, 100) == (tried if tried is None else pytest.approx(tried))


@given(capacity_rps=st.floats(0.5, 5000), first_rps=st.floats(1, 500))
def test_sweep_result_brackets_the_capacity(capacity_rps: float, first_rps: float) -> None:
    steps: list[Step] = []
    while (rate := next_rate(steps, BOUNDS, first_rps)) is not None:
        steps.append(fine(rate) if rate <= capacity_rps else broken(rate))
    found = result_of(steps, BOUNDS)
    assert len(steps) <= MOST_STEPS
    if found.met_rps is not None:
        assert found.met_rps <= capacity_rps
    if found.missed_rps is not None:
        assert found.missed_rps > capacity_rps
    if found.met_rps is not None and found.missed_rps is not None and len(steps) < MOST_STEPS:
        assert found.missed_rps / found.met_rps <= RISE**0.26


def test_rate_met_above_missed_rate_does_not_count() -> None:
    found = result_of([fine(100), broken(150), fine(225)], BOUNDS)
    assert (found.met_rps, found.missed_rps) == (100, 150)


def test_first_rate_and_step_duration_follow_the_server() -> None:
    assert first_rate(0.010, None, BOUNDS) == pytest.approx(25)
    assert first_rate(0.010, 888.0, BOUNDS) == pytest.approx(222)
    assert step_seconds(50, BOUNDS, 1.0) == pytest.approx(4.0)
    assert step_seconds(100, BOUNDS, 1.0) == pytest.approx(2.0)
    assert step_seconds(1000, BOUNDS, 1.0) == pytest.approx(1.0)


COST = CostModel(fixed_s=0.006, per_item_s=0.004, max_batch=8)


def batches(rate_rps: float, size: float, cost: CostModel = COST) -> Step:
    return Step(
        rate_rps=rate_rps,
        latencies_s=[0.05],
        batches=100,
        batch_items=100 * size,
        batch_seconds=100 * cost.batch_s(size),
    )


def test_cost_of_several_batch_sizes_ignores_advertised_cost() -> None:
    claimed = replace(COST, fixed_s=0.001)
    found = cost_of([batches(50, 1.2), batches(100, 2.0), batches(200, 6.0)], claimed, None)
    assert found.source is CostSource.BATCHES
    assert found.cost.fixed_s == pytest.approx(0.006)
    assert found.cost.per_item_s == pytest.approx(0.004)
    assert found.cost.max_batch == 8


def test_cost_of_one_batch_size_is_the_advertised_cost() -> None:
    found = cost_of([batches(50, 1.2), batches(100, 1.3)], COST, None)
    assert found.source is CostSource.WARM_UP
    assert found.cost is COST


@pytest.mark.parametrize(
    "cost",
    [
        COST,
        CostModel(fixed_s=0.020, per_item_s=0.0015, max_batch=16),
        CostModel(fixed_s=0.050, per_item_s=0.0, max_batch=1),
    ],
    ids=["half fixed", "mostly fixed", "no batching"],
)
def test_cost_from_latencies_has_the_same_capacity(cost: CostModel) -> None:
    steps = []
    for share in (0.05, 0.3, 0.5, 0.7, 0.85):
        rate = share * cost.full_batch_rps
        # a percentile's neighbours do not matter to the fit: give it the model's own p50 and p90
        median_s, high_s = (
            TailLatency(cost=cost, percentile=p).latency_s(rate, 1) for p in (0.5, 0.9)
        )
        steps.append(Step(rate_rps=rate, latencies_s=[median_s] * 50 + [high_s] * 50))
    found = cost_of(steps, None, cost.max_batch)
    assert found.source is CostSource.LATENCIES
    assert found.cost.full_batch_rps == pytest.approx(cost.full_batch_rps, rel=0.1)
    assert found.cost.batch_s(1) == pytest.approx(cost.batch_s(1), rel=0.1)


def test_cost_without_max_batch_raises() -> None:
    with pytest.raises(ImpossiblePlan, match="Give --max-batch"):
        cost_of([fine(100)], None, None)


def test_cost_with_misses_at_every_rate_raises() -> None:
    with pytest.raises(ImpossiblePlan, match="measure an idle server"):
        cost_of([Step(rate_rps=1, missed=10)], None, 8)
