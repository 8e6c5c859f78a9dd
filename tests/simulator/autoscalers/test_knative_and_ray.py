"""Knative's windows and panic, Ray Serve's delays: by hand, at their published defaults."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.autoscalers.knative import Knative, TickWindow
from headroom.simulator.autoscalers.ray_serve import RayServe
from simulator.autoscalers.fakes_view import Flow, World, truth


def ticks(world: World, peer: Knative, seconds: int, flow: Flow) -> ScaleRequest:
    """Evaluate every 2 s as the autoscaler does, scraped every second."""
    request = world.ask(peer) if world.metrics.scraped_s is not None else None
    for _ in range(0, seconds, 2):
        request = world.run(2, flow, every_s=1).ask(peer)
    assert request is not None
    return request


def test_knative_window_counts_gaps_as_zero_and_drops_stale_tail() -> None:
    window = TickWindow(window_s=10, tick_s=2)
    for at, value in ((2, 10.0), (4, 20.0), (10, 30.0)):
        window.record(at, value)
    assert window.mean(10) == 12.0  # 60 over the five ticks from 2 to 10.
    assert window.mean(14) == 30.0 / 3  # From 6 to 10: two gaps, then nothing after 10.
    assert window.mean(20) is None


@pytest.mark.parametrize(
    ("in_flight", "expected"),
    [
        pytest.param(4.0, 1, id="4 / 5.6"),
        pytest.param(5.6, 1, id="exactly the target"),
        pytest.param(6.0, 2, id="6 / 5.6; the panic window wants 2 of 1: panic, too"),
        pytest.param(30.0, 6, id="30 / 5.6 = 5.4"),
    ],
)
def test_knative_stable_count_of_one_pod(in_flight: float, expected: int) -> None:
    peer = Knative(truth=truth())
    assert ticks(World.of(1), peer, 64, Flow(running=in_flight)).replicas == expected


def test_knative_on_requests_per_second_uses_a_share_of_the_capacity() -> None:
    peer = Knative(truth=truth(capacity_rps=150.0), rps_share=0.5)
    world = World.of(1).run(10, Flow(rps=200), every_s=1)
    assert world.ask(peer).replicas == 3  # 200 / 75 = 2.67


def test_knative_counts_queued_requests() -> None:
    request = ticks(World.of(1), Knative(truth=truth()), 64, Flow(running=6, waiting=24))
    assert request.replicas == 6


def test_knative_panic_starts_at_twice_ready_and_lasts_a_window() -> None:
    peer, world = Knative(truth=truth()), World.of(1)
    assert ticks(world, peer, 60, Flow(running=4)) == ScaleRequest(replicas=1, reason="Stable")
    surge = ticks(world, peer, 10, Flow(running=20))
    assert surge == ScaleRequest(replicas=4, reason="Panic")  # 20 / 5.6 = 3.6, at least twice one.
    after = ticks(world, peer, 60, Flow(running=1))
    assert after.replicas == 4
    assert ticks(world, peer, 10, Flow(running=1)).replicas == 1


def test_knative_starts_in_panic_and_keeps_replicas() -> None:
    peer, world = Knative(truth=truth()), World.of(4)
    assert ticks(world, peer, 58, Flow(running=0.1)) == ScaleRequest(replicas=4, reason="Panic")


def test_knative_scales_down_by_at_most_half() -> None:
    peer, world = Knative(truth=truth()), World.of(9)
    assert ticks(world, peer, 70, Flow(running=0.1)) == ScaleRequest(replicas=4, reason="Stable")


def test_knative_without_data_keeps_replicas() -> None:
    peer, world = Knative(truth=truth()), World.of(2)
    ticks(world, peer, 70, Flow(running=8))
    for _ in range(40):
        world.silence(2, 1)
        request = world.ask(peer)
    assert request == ScaleRequest(replicas=2, reason="NoData")


def test_knative_scales_partial_scrape_to_all_pods() -> None:
    peer, world = Knative(truth=truth()), World.of(4)
    for _ in range(40):
        world.run(2, Flow(running=8), every_s=1, lost=["pod-0", "pod-1"])
        request = world.ask(peer)
    assert request.replicas == 6  # 4 x 8 / 5.6 = 5.7


def test_knative_scale_down_delay_keeps_the_largest() -> None:
    peer, world = Knative(truth=truth(), scale_down_delay_s=120.0), World.of(1)
    ticks(world, peer, 64, Flow(running=8))
    assert ticks(world, peer, 110, Flow(running=1)).replicas == 2
    assert ticks(world, peer, 90, Flow(running=1)).replicas == 1


def seconds(world: World, peer: RayServe, count: int, flow: Flow) -> list[ScaleRequest]:
    """Evaluate every second between two pushes of metrics, which come every 10 s."""
    requests = []
    for second in range(count):
        if second % 10 == 0:
            world.run(10, flow, every_s=10)
        requests.append(peer.evaluate(shifted(world, second % 10)))
    return requests


def shifted(world: World, by_s: float) -> View:
    """The world's view some seconds after its last scrape."""
    return replace(world.view(), now_s=world.now_s + by_s)


def test_ray_scales_up_after_30_s_to_the_last_value() -> None:
    peer, world = RayServe(truth=truth()), World.of(2)
    world.run(40, Flow(running=5), every_s=10)
    requests = seconds(world, peer, 31, Flow(running=5))
    assert [request.replicas for request in requests] == [2] * 30 + [5]  # 10 / 2


def test_ray_scales_down_after_600_s() -> None:
    peer, world = RayServe(truth=truth()), World.of(4)
    world.run(40, Flow(running=1), every_s=10)
    requests = seconds(world, peer, 601, Flow(running=1))
    assert [request.replicas for request in requests] == [4] * 600 + [2]  # 4 / 2


def test_ray_restarts_delay_on_change_of_direction() -> None:
    peer, world = RayServe(truth=truth()), World.of(2)
    world.run(40, Flow(running=5), every_s=10)
    seconds(world, peer, 20, Flow(running=5))
    seconds(world, peer, 40, Flow(running=0.5))
    requests = seconds(world, peer, 20, Flow(running=20))
    assert {request.replicas for request in requests} == {2}


@pytest.mark.parametrize(
    ("ready", "running", "knobs", "expected"),
    [
        pytest.param(2, 2.5, {"upscaling_factor": 0.5}, 3, id="2 + 0.5 x 0.5 = 2.25"),
        pytest.param(3, 1.3, {"downscaling_factor": 0.3}, 2, id="2.7 rounds to 3: one less"),
        pytest.param(3, 5 / 3, {"downscaling_factor": 0.3}, 3, id="wanted 2.5 is 3: stay"),
        pytest.param(2, 9.0, {"target_batches": 0.5}, 5, id="18 / (0.5 x 8)"),
        pytest.param(2, 200.0, {}, 50, id="at most the maximum"),
    ],
)
def test_ray_applies_factors_and_bounds(
    ready: int, running: float, knobs: dict[str, float], expected: int
) -> None:
    peer = RayServe(truth=truth(), upscale_delay_s=0.0, downscale_delay_s=0.0, **knobs)
    world = World.of(ready).run(40, Flow(running=running), every_s=10)
    assert world.ask(peer).replicas == expected


def test_ray_reads_missing_metrics_as_idle() -> None:
    peer, world = RayServe(truth=truth()), World.of(4)
    world.run(40, Flow(running=2), every_s=10)
    for _ in range(70):
        world.silence(10, 10)
        world.replicas = world.ask(peer).replicas
    assert world.replicas == 1


def test_ray_without_running_replica_waits() -> None:
    assert World.of(0, warming=2).ask(RayServe(truth=truth())).replicas == 2
