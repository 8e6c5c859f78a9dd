"""HPA on utilization, queue and p95, and KEDA: through their metrics, by hand."""

from __future__ import annotations

import pytest

from headroom.simulator.autoscalers.hpa import HpaLatency, HpaQueue, HpaRequests, HpaUtilization
from headroom.simulator.autoscalers.keda import FallbackBehavior, Keda
from simulator.autoscalers.fakes_view import Flow, World, truth


@pytest.mark.parametrize(
    ("world", "busy", "expected"),
    [
        pytest.param(World.of(3), 0.9, 4, id="0.9 / 0.7 = 1.286: ceil(3.86)"),
        pytest.param(World.of(3), 0.76, 3, id="1.086 is within the tolerance"),
        pytest.param(World.of(2, warming=2), 0.9, 4, id="with the warming at 0 it turns around"),
        pytest.param(World.of(2, unschedulable=2), 0.9, 4, id="so with unschedulable ones"),
        pytest.param(World.of(3), 0.2, 3, id="down is stabilized"),
    ],
)
def test_utilization(world: World, busy: float, expected: int) -> None:
    peer = HpaUtilization(truth=truth())
    assert world.run(60, Flow(busy=busy)).ask(peer).replicas == expected


def test_utilization_comes_down_after_300_s_by_the_whole_ratio() -> None:
    peer, world = HpaUtilization(truth=truth()), World.of(6)
    for _ in range(25):
        world.run(15, Flow(busy=0.2))
        world.replicas = world.ask(peer).replicas
    assert world.replicas == 2  # 0.2 / 0.7 x 6 = 1.7


def test_utilization_with_a_pod_that_no_scrape_reaches() -> None:
    peer = HpaUtilization(truth=truth())
    world = World.of(3).run(60, Flow(busy=0.9), lost=["pod-0"])
    assert world.ask(peer).replicas == 3  # The missing at 0: 1.8 / 3 / 0.7 = 0.86, turned around.


def test_utilization_holds_without_any_metric() -> None:
    peer, world = HpaUtilization(truth=truth()), World.of(3).run(60, Flow(busy=0.9))
    for _ in range(60):
        assert world.silence(15, 15).ask(peer).replicas >= 3


@pytest.mark.parametrize(
    ("world", "waiting", "expected"),
    [
        pytest.param(World.of(3), 10.0, 4, id="30 / 8 = 3.75"),
        pytest.param(World.of(3), 8.7, 3, id="26.1 / 24 = 1.09 is within the tolerance"),
        pytest.param(World.of(2, warming=2), 16.0, 4, id="32 / 8 = 4, all existing pods counted"),
    ],
)
def test_queue(world: World, waiting: float, expected: int) -> None:
    peer = HpaQueue(truth=truth())
    assert world.run(15, Flow(waiting=waiting)).ask(peer).replicas == expected


@pytest.mark.parametrize(
    ("rps", "expected"),
    [
        pytest.param(150.0, 4, id="450 / (0.8 x 150) = 3.75"),
        pytest.param(130.0, 3, id="390 / 360 = 1.083 is within the tolerance"),
        pytest.param(0.0, 3, id="down is stabilized"),
    ],
)
def test_requests_against_a_share_of_the_true_capacity(rps: float, expected: int) -> None:
    peer = HpaRequests(truth=truth(capacity_rps=150.0))
    assert World.of(3).run(60, Flow(rps=rps)).ask(peer).replicas == expected


def test_requests_without_two_scrapes_are_an_error() -> None:
    peer = HpaRequests(truth=truth())
    assert World.of(3).ask(peer).reason == "FailedGetMetrics"


def test_queue_with_requests_in_flight_is_their_mean_over_the_window() -> None:
    peer, world = HpaQueue(truth=truth(), in_flight=True), World.of(3)
    world.run(60, Flow(running=8, waiting=2)).run(15, Flow(running=8, waiting=10))
    # means of the five samples of a minute, the last of them 18: (4 x 10 + 18) / 5 = 11.6
    assert world.ask(peer).replicas == 5  # 3 x 11.6 / 8 = 4.35


def test_keda_with_requests_in_flight_counts_running_ones() -> None:
    world = World.of(3).run(60, Flow(running=12))
    assert world.ask(Keda(truth=truth(latency_ratio=0.5))).replicas == 3
    assert world.ask(Keda(truth=truth(latency_ratio=0.5), in_flight=True)).replicas == 5


def test_queue_without_answer_is_an_error_not_zero() -> None:
    peer, world = HpaQueue(truth=truth()), World.of(5).run(15, Flow(waiting=8))
    for _ in range(40):
        assert world.silence(15, 15).ask(peer).reason == "FailedGetMetrics"
    assert world.ask(peer).replicas == 5


@pytest.mark.parametrize(
    ("ratio", "world", "expected"),
    [
        pytest.param(1.5, World.of(4), 6, id="ceil(1.5 x 4)"),
        pytest.param(1.5, World.of(4, warming=4), 8, id="6 from the ready ones: down, held"),
        pytest.param(1.09, World.of(4), 4, id="within the tolerance"),
    ],
)
def test_latency(ratio: float, world: World, expected: int) -> None:
    peer = HpaLatency(truth=truth(latency_ratio=ratio))
    assert world.run(60, Flow(rps=20)).ask(peer).replicas == expected


def test_latency_without_answers_holds() -> None:
    peer = HpaLatency(truth=truth(latency_ratio=1.5))
    assert World.of(4).run(60).ask(peer).reason == "FailedGetMetrics"


@pytest.mark.parametrize(
    ("ratio", "waiting", "expected"),
    [
        pytest.param(0.5, 10.0, 4, id="the queue asks for more: ceil(30 / 8)"),
        pytest.param(1.9, 10.0, 6, id="p95 asks for more: ceil(1.9 x 3)"),
        pytest.param(1.05, 8.5, 3, id="both within the tolerance"),
    ],
)
def test_keda_takes_the_larger(ratio: float, waiting: float, expected: int) -> None:
    peer = Keda(truth=truth(latency_ratio=ratio))
    assert World.of(3).run(60, Flow(rps=20, waiting=waiting)).ask(peer).replicas == expected


def test_keda_takes_lost_metrics_for_zero_and_drains_to_its_floor() -> None:
    peer, world = Keda(truth=truth(latency_ratio=1.0)), World.of(6)
    world.run(60, Flow(rps=20, waiting=8)).ask(peer)
    for _ in range(26):
        world.silence(15, 15)
        world.replicas = world.ask(peer).replicas
    assert world.replicas == 1


def test_keda_holds_lost_metrics_where_null_is_an_error() -> None:
    peer, world = Keda(truth=truth(), ignore_null_values=False), World.of(6)
    world.run(60, Flow(rps=20, waiting=8)).ask(peer)
    for _ in range(40):
        world.silence(15, 15)
        world.replicas = world.ask(peer).replicas
    assert world.replicas == 6


@pytest.mark.parametrize(
    ("behavior", "expected"),
    [
        (FallbackBehavior.STATIC, 4),
        (FallbackBehavior.CURRENT, 6),
        (FallbackBehavior.CURRENT_IF_HIGHER, 6),
        (FallbackBehavior.CURRENT_IF_LOWER, 4),
    ],
)
def test_keda_falls_back_after_three_failures(behavior: FallbackBehavior, expected: int) -> None:
    peer = Keda(
        truth=truth(),
        ignore_null_values=False,
        fallback_replicas=4,
        fallback_behavior=behavior,
        stabilization_s=0.0,
    )
    world = World.of(6).silence(15, 15)
    reasons = [world.silence(15, 15).ask(peer).reason for _ in range(3)]
    assert reasons == ["FailedGetMetrics"] * 3
    assert world.silence(15, 15).ask(peer).replicas == expected


def test_keda_goes_to_zero_after_its_cooldown_and_stays_there() -> None:
    peer, world = Keda(truth=truth(min_replicas=0)), World.of(1)
    world.run(60, Flow(waiting=1)).ask(peer)
    asked = {}
    for _ in range(24):
        world.run(15)
        asked[world.now_s - 60] = world.ask(peer).replicas
    assert asked[300] == 1
    assert asked[330] == 0
    world.replicas, world.states = 0, {}
    assert world.silence(60, 15).ask(peer).replicas == 0
