"""The figures that every planner of capacity should be able to give, as they are on paper."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.planner import batching, queueing
from headroom.planner.ceiling import replicas_under_ceiling
from headroom.planner.demand import Service
from headroom.planner.fan_out import percentile_of_all, percentile_of_each
from headroom.planner.generation.kv_cache import Transformer
from headroom.planner.latency_budget import amdahl
from headroom.planner.replicas import plan_replicas
from headroom.scaling.values.observation import CostModel

BATCH = CostModel(fixed_s=0.006, per_item_s=0.004, max_batch=8)


def test_littles_law_counts_requests_in_system() -> None:
    assert queueing.in_system(400, 0.050) == pytest.approx(20)


@pytest.mark.parametrize(
    ("utilization", "waiting"), [(0.5, 0.5), (0.8, 3.2), (0.9, 8.1), (0.95, 18.05)]
)
def test_mm1_queue_gives_utilization(utilization: float, waiting: float) -> None:
    assert queueing.mm1_utilization(waiting) == pytest.approx(utilization)


def test_mm1_queue_of_ten_is_at_utilization_0_916() -> None:
    assert round(queueing.mm1_utilization(10), 3) == 0.916


@pytest.mark.parametrize(
    ("slots", "utilization", "waiting", "latency_ms"),
    [
        (1, 0.8, 3.2, 50.0),  # M/M/1
        (2, 0.5, 1 / 3, 80 / 3),  # C = 1/3: 20 ms and 1/3 over 50/s
        (3, 2 / 3, 8 / 9, 30 + 40 / 3),  # C = 2^3/3! x 3 / (1 + 2 + 2 + 4) = 4/9
        (4, 0.0, 0.0, 40.0),
    ],
)
def test_mmc_latency_matches_erlang_c(
    slots: int, utilization: float, waiting: float, latency_ms: float
) -> None:
    assert queueing.mmc_waiting(slots, utilization) == pytest.approx(waiting)
    assert 1000 * queueing.mmc_latency_s(100, slots, utilization) == pytest.approx(latency_ms)


def test_fifty_per_second_under_ceiling_need_16_replicas() -> None:
    plan = replicas_under_ceiling(50, 8 / 2.0, ceiling=0.8, headroom=0.2)
    assert queueing.in_system(50, 2.0) == pytest.approx(100)
    assert plan.usable_rps == pytest.approx(3.2)
    assert plan.replicas == 16
    assert plan.carries_rps == pytest.approx(51.2)
    assert (plan.with_headroom, plan.with_spare_replicas) == (19, 20)


def test_two_slots_of_12_ms_under_ceiling_need_7_replicas() -> None:
    plan = replicas_under_ceiling(600, 2 / 0.012, ceiling=0.7, headroom=0.2)
    assert round(plan.usable_rps, 1) == 116.7
    assert plan.with_headroom == 7


def test_worst_latency_is_wait_plus_full_batch() -> None:
    assert batching.full_batch_s(BATCH) == pytest.approx(0.038)
    assert int(BATCH.full_batch_rps) == 210
    assert batching.worst_latency_s(BATCH, 0.020) == pytest.approx(0.058)


def test_batch_for_200_per_second_within_120_ms_needs_no_wait() -> None:
    """8 would carry 210/s, but queue for longer; twice that keeps the promise on one replica."""
    service = Service(cost=replace(BATCH, max_batch=32), target_s=0.120, ceiling=0.95)
    choice = batching.choose_batching(service, 200)
    assert choice.plan.replicas == 1
    assert 12 <= choice.max_batch <= 24
    assert choice.wait_s == 0
    assert choice.plan.chosen.slo_latency_s <= 0.120
    assert choice.longest_wait_s == pytest.approx(0.120 - choice.plan.chosen.slo_latency_s)
    of_eight = plan_replicas(replace(service, cost=BATCH), 200)
    assert of_eight.replicas == 2


@pytest.mark.parametrize(("calls", "each"), [(2, 99.50), (5, 99.80), (10, 99.90), (20, 99.95)])
def test_fan_out_at_p99_matches_formula(calls: int, each: float) -> None:
    assert round(100 * percentile_of_each(0.99, calls), 2) == each
    assert percentile_of_all(percentile_of_each(0.99, calls), calls) == pytest.approx(0.99)


@pytest.mark.parametrize(("factor", "whole"), [(1, 1.0), (2, 1.54), (10, 2.7)])
def test_amdahl_of_seventy_percent_matches_formula(factor: float, whole: float) -> None:
    assert amdahl(0.7, factor) == pytest.approx(whole, abs=0.005)


def test_kv_cache_of_32_layers_of_4096_is_half_mib_per_token() -> None:
    model = Transformer(layers=32, width=4096)
    assert model.bytes_per_token == 0.5 * 2**20
    assert model.cache_bytes(4096) == 2 * 2**30
    assert model.sequences(4096, 80 * 2**30, 13 * 2**30) == 33
    assert replace(model, kv_share=0.25).cache_bytes(4096) == 0.5 * 2**30
