"""Dynamo's two loops, AIBrix's APA and AIAD, by hand."""

from __future__ import annotations

import pytest

from headroom.simulator.autoscaler import ScaleRequest
from headroom.simulator.autoscalers.aiad import Aiad
from headroom.simulator.autoscalers.aibrix import AibrixApa
from headroom.simulator.autoscalers.dynamo import Dynamo, TrendFilter
from simulator.autoscalers.fakes_view import P95_S, Flow, World, truth


@pytest.mark.parametrize(
    ("queued", "seconds"),
    [
        pytest.param(0, 0.0215, id="alone: 20 + 1.5 ms"),
        pytest.param(7, 0.032, id="one full batch: 20 + 12 ms"),
        pytest.param(8, 0.0535, id="a full batch, then alone"),
        pytest.param(51, 6 * 0.032 + 0.026, id="six full batches and one of four"),
    ],
)
def test_dynamo_estimates_by_batches_ahead(queued: int, seconds: float) -> None:
    assert Dynamo(truth=truth()).estimate_s(queued) == pytest.approx(seconds)


# The target is 0.197 s: six full batches and more than two requests ahead are above it.
@pytest.mark.parametrize(
    ("flows", "expected"),
    [
        pytest.param(
            (Flow(waiting=60, running=8),) * 2, 3, id="every engine above the SLA: one up"
        ),
        pytest.param((Flow(waiting=60), Flow(waiting=2)), 2, id="one of them is not: no change"),
        pytest.param(
            (Flow(waiting=1, running=2),) * 3, 2, id="4.5 of 8 after the removal: one down"
        ),
        pytest.param((Flow(waiting=2, running=4),) * 3, 3, id="9 of 8 would not fit"),
        pytest.param((Flow(waiting=1, running=3),) * 2, 2, id="8 of 8 is not below 8"),
        pytest.param((Flow(),), 1, id="the last one stays"),
    ],
)
def test_dynamo_load_loop(flows: tuple[Flow, ...], expected: int) -> None:
    world = World.of(len(flows))
    world.run(5, flows=dict(zip(world.ready, flows, strict=True)), every_s=5)
    assert world.ask(Dynamo(truth=truth())).replicas == expected


def test_dynamo_does_nothing_while_scaling_or_without_all_engines() -> None:
    peer = Dynamo(truth=truth())
    full = Flow(waiting=60, running=8)
    for world, reason in (
        (World.of(2, warming=1).run(5, full, every_s=5), "scaling_in_progress"),
        (World.of(2, unschedulable=1).run(5, full, every_s=5), "scaling_in_progress"),
        (World.of(2).run(5, full, every_s=5, lost=["pod-0"]), "worker_count_mismatch"),
        (World.of(2).silence(5, 5), "no_fpm_data"),
    ):
        assert world.ask(peer) == ScaleRequest(replicas=world.replicas, reason=reason)


def test_dynamo_floor_after_180_s_of_demand_over_the_profile() -> None:
    peer, world = Dynamo(truth=truth(capacity_rps=150.0)), World.of(2)
    asked = {}
    world.run(10, Flow(rps=200, running=6), every_s=5)
    for _ in range(38):
        asked[world.now_s - 10] = world.ask(peer)
        world.run(5, Flow(rps=200, running=6), every_s=5)
    assert asked[175].replicas == 2  # 12 of 8 places would not fit one engine.
    assert asked[180] == ScaleRequest(replicas=3, reason="throughput_lower_bound")  # 400 / 150


@pytest.mark.parametrize(
    ("ratio", "expected"), [(1.0, 3), (0.8, 4), (0.5, 6)], ids=["400/150", "400/120", "400/75"]
)
def test_dynamo_profile_ratio(ratio: float, expected: int) -> None:
    peer, world = Dynamo(truth=truth(), profile_ratio=ratio), World.of(2)
    world.run(10, Flow(rps=200, running=6), every_s=5)
    for _ in range(37):
        request = world.ask(peer)
        world.run(5, Flow(rps=200, running=6), every_s=5)
    assert request.replicas == expected


def test_trend_filter_with_few_values_predicts_the_last_one() -> None:
    trend = TrendFilter()
    for value in (100.0, 200.0, 300.0, 400.0):
        trend.observe(value)
        assert trend.next() == value
    trend.observe(500.0)
    assert trend.next() == pytest.approx(600.0, rel=0.02)


def test_trend_filter_follows_constant_and_stays_above_zero() -> None:
    trend = TrendFilter()
    for _ in range(10):
        trend.observe(50.0)
    assert trend.next() == pytest.approx(50.0)
    for value in (30.0, 10.0, 0.0, 0.0):
        trend.observe(value)
    assert trend.next() == 0.0


@pytest.mark.parametrize(
    ("world", "running", "expected"),
    [
        pytest.param(World.of(4), 6.0, 6, id="0.75 / 0.5 = 1.5: ceil(6)"),
        pytest.param(World.of(4), 4.4, 4, id="1.1 is within the tolerance"),
        pytest.param(World.of(4), 4.5, 5, id="1.125: ceil(4.5)"),
        pytest.param(World.of(3), 16.0, 6, id="4 times the target: at most double"),
        pytest.param(World.of(4, warming=2), 6.0, 6, id="9 of 6; the pending idle: 6, no more"),
        pytest.param(World.of(4, warming=2), 8.0, 8, id="12 of 6; the pending idle: ceil(8)"),
    ],
)
def test_aibrix_up(world: World, running: float, expected: int) -> None:
    peer = AibrixApa(truth=truth())
    assert world.run(10, Flow(running=running), every_s=10).ask(peer).replicas == expected


@pytest.mark.parametrize(
    ("world", "running", "expected"),
    [
        pytest.param(World.of(4), 1.0, 2, id="0.25: ceil(1), at most half"),
        pytest.param(World.of(4), 2.5, 3, id="0.625: ceil(2.5)"),
        pytest.param(World.of(4, warming=2), 2.0, 4, id="the pending at target: 2 + 2, not 3"),
        pytest.param(World.of(4), 3.7, 4, id="0.925 is within the tolerance"),
    ],
)
def test_aibrix_down_after_300_s(world: World, running: float, expected: int) -> None:
    peer, asked = AibrixApa(truth=truth()), list[int]()
    world.run(10, Flow(running=4), every_s=10).ask(peer)
    asked.extend(
        world.run(10, Flow(running=running), every_s=10).ask(peer).replicas for _ in range(48)
    )
    assert asked[28] == world.replicas  # 290 s after the first recommendation.
    assert asked[-1] == expected


def test_aibrix_smooths_over_180_s() -> None:
    peer, world = AibrixApa(truth=truth()), World.of(4)
    for _ in range(18):
        world.run(10, Flow(running=4), every_s=10).ask(peer)
    # One of 18 samples at 1.0 among 0.5: 0.528 / 0.5 is within the tolerance.
    assert world.run(10, Flow(running=8), every_s=10).ask(peer).replicas == 4


def test_aibrix_skips_failed_scrapes_and_holds_without_any() -> None:
    peer, world = AibrixApa(truth=truth()), World.of(4)
    world.run(10, Flow(running=6), every_s=10, lost=["pod-0", "pod-1", "pod-2"])
    assert world.ask(peer).replicas == 6
    assert world.silence(10, 10).ask(AibrixApa(truth=truth())).reason == "NoMetrics"


def aiad(ratio: float, seconds: int, flow: Flow, *, lost: bool = False) -> list[int]:
    """Return the requested replicas every 10 s, always starting from 3."""
    peer, world = Aiad(truth=truth(latency_ratio=ratio)), World.of(3)
    world.run(30, flow, every_s=5)
    asked = []
    for _ in range(0, seconds, 10):
        asked.append(world.ask(peer).replicas)
        world.run(10, flow, every_s=5, lost=world.ready if lost else ())
    return asked


@pytest.mark.parametrize(
    ("ratio", "flow", "expected"),
    [
        pytest.param(1.2, Flow(rps=10), [3, 3, 3, 4, 3, 3, 4], id="above: one more each 30 s"),
        pytest.param(0.8, Flow(rps=10), [3] * 30 + [2] + [3] * 29 + [2], id="below: one per 5 min"),
        pytest.param(0.8, Flow(), [3] * 30 + [2], id="idle is below"),
        pytest.param(0.8, Flow(waiting=9), [3, 3, 3, 4], id="a queue without answers is above"),
    ],
)
def test_aiad(ratio: float, flow: Flow, expected: list[int]) -> None:
    assert aiad(ratio, 10 * len(expected), flow) == expected


def test_aiad_holds_without_metrics() -> None:
    assert aiad(1.2, 600, Flow(rps=10), lost=True) == [3] * 60


def test_fake_view_has_assumed_p95() -> None:
    world = World.of(1).run(60, Flow(rps=10))
    assert world.metrics.quantile(0.95, world.now_s, 60) == pytest.approx(P95_S)
    assert 0.17 < P95_S < 0.23
