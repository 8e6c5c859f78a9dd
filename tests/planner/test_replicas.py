"""Replicas, their neighbours, and the batch: against hand counts, properties and a simulation."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.planner.batching import choose_batching
from headroom.planner.demand import Service
from headroom.planner.errors import ImpossiblePlan
from headroom.planner.replicas import carried_rps, expectation, plan_replicas
from headroom.planner.utilization_curve import utilization_curve
from headroom.scaling.values.decision_reason import Reason
from headroom.scaling.values.observation import CostModel

VISION = Service(
    cost=CostModel(fixed_s=0.006, per_item_s=0.004, max_batch=8), target_s=0.120, ceiling=0.8
)


def test_plan_with_loose_target_is_bound_by_ceiling() -> None:
    plan = plan_replicas(VISION, 400)  # 210.5/s full, 168.4/s at the ceiling: 2.4
    assert plan.replicas == 3
    assert plan.by_utilization == 3
    assert plan.binding is Reason.UTILIZATION_CEILING
    assert plan.chosen.utilization == pytest.approx(400 / (3 * 8 / 0.038))
    assert plan.chosen.holds
    assert plan.chosen.gpu_hours_per_day == 72
    assert plan.carries_rps == pytest.approx(3 * 0.8 * 8 / 0.038)


def test_plan_with_tight_target_is_bound_by_latency() -> None:
    plan = plan_replicas(replace(VISION, target_s=0.030), 400)
    assert plan.by_latency is not None
    assert plan.by_latency > plan.by_utilization
    assert plan.binding is Reason.LATENCY_MODEL
    assert plan.chosen.slo_latency_s <= 0.030
    assert plan.fewer is not None
    assert not plan.fewer.holds
    assert plan.more.slo_latency_s < plan.chosen.slo_latency_s


def test_plan_with_one_fewer_replica_is_unbounded() -> None:
    plan = plan_replicas(VISION, 400)
    assert plan.fewer is not None
    one = expectation(VISION, 400, 1)
    assert math.isinf(one.slo_latency_s)
    assert not one.holds


def test_headroom_changes_replicas_and_not_expectation() -> None:
    plan = plan_replicas(replace(VISION, headroom=0.5), 400)  # 600/s over 168.4/s: 3.6
    assert plan.replicas == 4
    assert plan.chosen.utilization == pytest.approx(400 / (4 * 8 / 0.038))


def test_plan_without_target_is_sized_by_utilization() -> None:
    cost = CostModel(fixed_s=2.0, per_item_s=0.0, max_batch=1, slots=8)
    plan = plan_replicas(Service(cost=cost, ceiling=0.8), 50)
    assert plan.replicas == 16
    assert plan.by_latency is None
    assert plan.carries_rps == pytest.approx(51.2)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"target_s": 0.005}, "at least 10 ms (the time of a single request); got 5 ms"),
        (
            {"cost": CostModel(fixed_s=1, per_item_s=0, max_batch=1, cv=1.0), "target_s": 1.0},
            "(p95 of single requests, whose times vary by cv 1); got 1000 ms",
        ),
        ({"target_s": -1.0}, "the latency target must be above 0"),
        ({"ceiling": 0.0}, "at most 0.95; got 0."),
        ({"ceiling": 0.96}, "at most 0.95; got 0.96"),
        ({"ceiling": math.nan}, "at most 0.95; got nan"),
        ({"percentile": 1.0}, "the percentile must be between 0 and 1; got 1"),
        ({"headroom": -0.1}, "the headroom must be between 0 and 10"),
        ({"gpus_per_replica": 0}, "GPUs per replica must be at least 1; got 0"),
        ({"cost": CostModel(fixed_s=0, per_item_s=0, max_batch=1)}, "the time of a single request"),
        ({"cost": CostModel(fixed_s=-1, per_item_s=2, max_batch=1)}, "overhead must be at least 0"),
        ({"cost": CostModel(fixed_s=1, per_item_s=0, max_batch=0)}, "batch size must be between 1"),
        (
            {"cost": CostModel(fixed_s=1, per_item_s=0, max_batch=1, slots=0)},
            "slots must be between 1",
        ),
        (
            {"cost": CostModel(fixed_s=1, per_item_s=0, max_batch=1, cv=-1)},
            "variation must be between 0",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_service_with_invalid_value_names_rule_value_and_next_step(
    changes: dict[str, object], said: str
) -> None:
    with pytest.raises(ImpossiblePlan) as caught:
        replace(VISION, **changes)  # type: ignore[arg-type]
    assert said in str(caught.value)
    assert re.search(r"; got .*\. [A-Z0-9].*\.$", str(caught.value))


@pytest.mark.parametrize("rate", [0.0, -1.0, math.inf, math.nan])
def test_plan_for_invalid_rate_raises(rate: float) -> None:
    with pytest.raises(ImpossiblePlan, match="the arrival rate must be above 0"):
        plan_replicas(VISION, rate)


@given(
    rate=st.floats(1, 5000),
    more=st.floats(1.0, 2.0),
    target_s=st.floats(0.02, 0.5),
    ceiling=st.floats(0.3, 0.95),
)
@settings(max_examples=50)
def test_plan_is_minimal_and_grows_with_load(
    rate: float, more: float, target_s: float, ceiling: float
) -> None:
    service = replace(VISION, target_s=target_s, ceiling=ceiling)
    plan = plan_replicas(service, rate)
    assert rate <= carried_rps(service, plan.replicas) * (1 + 1e-6)
    if plan.replicas > 1:
        assert rate > carried_rps(service, plan.replicas - 1) * (1 - 1e-6)
    assert plan_replicas(service, rate * more).replicas >= plan.replicas


def test_curve_rises_and_contains_the_plan() -> None:
    plan = plan_replicas(VISION, 400)
    curve = utilization_curve(VISION, plan.replicas)
    assert curve.latency_s.shape == (49, 3)
    assert (np.diff(curve.slo_latency_s) >= 0).all()
    at = float(np.interp(plan.chosen.utilization, curve.utilization, curve.slo_latency_s))
    assert at == pytest.approx(plan.chosen.slo_latency_s, rel=0.02)


def test_larger_batches_never_need_more_replicas() -> None:
    replicas = []
    for limit in (1, 2, 4, 8, 16):
        cost = replace(VISION.cost, max_batch=limit)
        replicas.append(choose_batching(replace(VISION, cost=cost), 400).plan.replicas)
    assert replicas == sorted(replicas, reverse=True)
    assert replicas[0] > replicas[-1]


@pytest.mark.parametrize("wait_s", [0.0, 0.010])
def test_chosen_batch_and_wait_meet_target_in_simulation(wait_s: float) -> None:
    """One replica with a batching timer: the wait adds at most itself to the percentile."""
    cost = replace(VISION.cost, max_batch=32)
    service = replace(VISION, cost=cost, ceiling=0.95)
    choice = choose_batching(service, 200)
    measured = simulated_p95(replace(cost, max_batch=choice.max_batch), 200, wait_s)
    assert measured <= (choice.plan.chosen.slo_latency_s + wait_s) * 1.05


def simulated_p95(cost: CostModel, rate_rps: float, wait_s: float, count: int = 80_000) -> float:
    """A batch begins when the server is free and it is full or its first has waited long enough."""
    arrivals = np.cumsum(np.random.default_rng(7).exponential(1 / rate_rps, count)).tolist()
    latencies, free_s, first = [], 0.0, 0
    while first < count:
        ripe_s = arrivals[first] + wait_s
        if first + cost.max_batch <= count:
            ripe_s = min(ripe_s, arrivals[first + cost.max_batch - 1])
        begin_s = max(free_s, ripe_s)
        last = first
        while last < count and last - first < cost.max_batch and arrivals[last] <= begin_s:
            last += 1
        free_s = begin_s + cost.batch_s(last - first)
        latencies += [free_s - arrived for arrived in arrivals[first:last]]
        first = last
    return float(np.quantile(latencies, 0.95))
