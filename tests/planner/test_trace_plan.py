"""The fewest GPUs for a load, and the promise that a cold start leaves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.planner.demand import Service
from headroom.planner.errors import ImpossiblePlan
from headroom.planner.feasibility import Feasibility, feasibility, min_replicas_for
from headroom.planner.replicas import plan_replicas
from headroom.planner.trace_plan import Rates, ahead, needed_replicas, plan_trace
from headroom.scaling.values.observation import CostModel

# 8 items in 64 ms: 125/s full, 100/s at the ceiling of 0.8
SERVICE = Service(
    cost=CostModel(fixed_s=0.032, per_item_s=0.004, max_batch=8), target_s=1.0, ceiling=0.8
)


def test_trace_plan_reports_peak_mean_and_gpu_hours() -> None:
    rates = [50.0, 100.0, 101.0, 300.0, 0.0, 250.0]
    plan = plan_trace(SERVICE, rates, 600.0, cold_start_s=180.0)
    assert plan.needed.tolist() == [1, 1, 2, 3, 0, 3]
    assert plan.peak == 3
    assert plan.mean == pytest.approx(10 / 6)
    assert plan.gpu_hours == pytest.approx(10 / 6)
    assert plan.needed_ahead.tolist() == [1, 2, 3, 3, 3, 3]
    assert plan.gpu_hours_ahead == pytest.approx(15 / 6)
    assert plan.gpu_hours_static == pytest.approx(3.0)
    assert plan.saved_ratio == pytest.approx(1 - 15 / 18)


def test_min_replicas_and_gpus_per_replica_add_gpu_hours() -> None:
    plan = plan_trace(replace(SERVICE, gpus_per_replica=4), [100.0, 0.0], 3600.0, min_replicas=2)
    assert plan.needed.tolist() == [2, 2]
    assert plan.gpu_hours == pytest.approx(16)
    assert plan.peak_gpus == 8


def test_each_window_is_sized_as_a_constant_rate() -> None:
    rates = np.linspace(1.0, 900.0, 60)
    alone = [plan_replicas(SERVICE, float(rate)).replicas for rate in rates]
    assert needed_replicas(SERVICE, rates).tolist() == alone


def test_look_ahead_bridges_gaps_shorter_than_cold_start() -> None:
    assert ahead(np.array([1, 1, 1, 3, 1]), 2).tolist() == [1, 3, 3, 3, 1]
    assert ahead(np.array([3, 1, 3, 1, 1]), 2).tolist() == [3, 3, 3, 1, 1]
    assert ahead(np.array([1, 2]), 99).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("rates", "window_s", "said"),
    [
        ([], 60.0, "at least one window; got 0"),
        ([0.0, 0.0], 60.0, "must have requests; got none"),
        ([1.0, -2.0], 60.0, "got -2 in window 1"),
        ([1.0, float("nan")], 60.0, "got nan in window 1"),
        ([1.0], 0.0, "the window must be above 0"),
    ],
)
def test_trace_plan_of_invalid_load_raises(rates: list[float], window_s: float, said: str) -> None:
    with pytest.raises(ImpossiblePlan) as caught:
        plan_trace(SERVICE, rates, window_s)
    assert said in str(caught.value)


def step_x3() -> Rates:
    """90 minutes at 100/s, 20 of them at 300/s: 780 000 requests."""
    rates = np.full(90, 100.0)
    rates[30:50] = 300.0
    return rates


def test_feasibility_of_threefold_step_matches_worked_example() -> None:
    """In order 300/s x 180 s late of 780 000; in any 300/s x 179 s, less 125/s x 180 s."""
    found = feasibility(SERVICE, step_x3(), 60.0, cold_start_s=180.0, min_replicas=1)
    assert found.requests == pytest.approx(780_000)
    assert found.missed_at_least == pytest.approx(31_200)
    assert found.attainment_at_most == pytest.approx(0.960, abs=0.0005)
    # the backlog passes one second's worth of 125/s within the first second
    assert found.missed_in_order == pytest.approx(54_000, rel=0.01)
    assert found.attainment_in_order == pytest.approx(0.931, abs=0.0005)


@pytest.mark.parametrize(
    ("floor", "cold_start_s", "attainment"),
    [
        (1, 0.0, 1.0),
        (1, 20.0, 1 - (300 * 19 - 125 * 20) / 780_000),
        (2, 180.0, 1 - (300 * 179 - 250 * 180) / 780_000),
        (3, 180.0, 1.0),
        (1, 3600.0, 1 - (300 * 1199 - 125 * 1200) / 780_000),  # it comes when the step is over
    ],
)
def test_min_replicas_and_shorter_start_raise_feasibility(
    floor: int, cold_start_s: float, attainment: float
) -> None:
    found = feasibility(SERVICE, step_x3(), 60.0, cold_start_s=cold_start_s, min_replicas=floor)
    assert found.attainment_at_most == pytest.approx(attainment)
    assert found.attainment_in_order <= found.attainment_at_most


def test_requests_that_wait_within_target_are_no_misses() -> None:
    """1 000/s above 125/s for 2 s, a target of 3 s: all may wait until enough stands."""
    rates = np.array([100.0, 1125.0, 1125.0, 100.0])
    patient = replace(SERVICE, target_s=3.0)
    found = feasibility(patient, rates, 1.0, cold_start_s=2.0, min_replicas=1)
    assert found.missed_at_least == 0
    assert found.attainment_in_order <= found.attainment_at_most == 1
    # those of the first second have 2 s of 125/s, those of the second what comes then
    hurried = feasibility(SERVICE, rates, 1.0, cold_start_s=2.0, min_replicas=1)
    assert hurried.missed_at_least == pytest.approx(1125 - 2 * 125)


@given(
    rates=st.lists(st.floats(0, 1000), min_size=1, max_size=30).filter(any),
    cold_start_s=st.floats(0, 600),
    longer=st.floats(1.0, 3.0),
    floor=st.integers(1, 6),
)
@settings(max_examples=60)
def test_feasibility_falls_with_cold_start_and_rises_with_min_replicas(
    rates: list[float], cold_start_s: float, longer: float, floor: int
) -> None:
    def feasible(cold_s: float, standing: int) -> Feasibility:
        load = np.array(rates)
        return feasibility(SERVICE, load, 60.0, cold_start_s=cold_s, min_replicas=standing)

    found = feasible(cold_start_s, floor)
    assert 0 <= found.attainment_in_order <= found.attainment_at_most + 1e-9 <= 1 + 1e-9
    slower, higher = feasible(cold_start_s * longer, floor), feasible(cold_start_s, floor + 1)
    assert slower.attainment_at_most <= found.attainment_at_most + 1e-9
    assert found.attainment_at_most <= higher.attainment_at_most + 1e-9


@pytest.mark.parametrize(("attainment", "floor"), [(0.95, 1), (0.98, 2), (0.99, 3)])
def test_min_replicas_for_attainment_are_the_fewest(attainment: float, floor: int) -> None:
    found = min_replicas_for(SERVICE, step_x3(), 60.0, cold_start_s=180.0, attainment=attainment)
    assert found == floor
