"""Scale to zero: after an idle time with fresh metrics, and back when a request is held."""

from __future__ import annotations

import pytest

from headroom.api import InferenceService
from headroom.controller.decide.scale_to_zero import misses_per_cold_start
from headroom.controller.gather.gateways.route_status import RouteStatus
from support.controller_world import REPLICA_RPS, SilentRouter, World, play

GATEWAY = {"mode": "Gateway"}
ZERO = {"minReplicas": 0, "scaleToZero": {"idleTimeout": "1m"}}


class GatewayProber(SilentRouter):
    """A router that only says how requests reach the services."""

    def __init__(self) -> None:
        self.now = RouteStatus(gateways=("10.0.0.1",), activators=2)

    def route_status(self, service: InferenceService) -> RouteStatus:
        return self.now if service.spec.routing.mode == "Gateway" else RouteStatus()


def at(replicas: int, world: World) -> bool:
    return world.replicas() == replicas


def test_last_replica_goes_after_idle_timeout_and_returns_at_once() -> None:
    prober = GatewayProber()

    async def scenario(world: World) -> None:
        world.create(routing=GATEWAY, scaling=ZERO)
        world.pods.arrivals_rps["resnet"] = 0.3 * REPLICA_RPS
        await world.run_for(120.0)
        assert at(1, world)
        assert world.condition("Ready") == ("True", "Serving")
        assert "with each start" not in world.message("SLOFeasible")
        assert "each start from zero makes about" in world.message("SLOFeasible")
        world.pods.arrivals_rps["resnet"] = 0.0
        await world.run_for(55.0)
        assert at(1, world)
        await world.run_for(20.0)
        assert at(0, world)
        assert world.condition("Ready") == ("True", "ScaledToZero")
        assert world.condition("ScalingActive") == ("True", "ScaledToZero")
        assert world.condition("MetricsAvailable") == ("True", "ScaledToZero")
        await world.run_for(600.0)
        assert at(0, world)
        assert world.status()["signals"]["arrivalsPerSecond"] == 0.0
        assert world.status()["signals"]["freshness"] == "Fresh"
        # A request arrives: its decision comes now, not at the next tick.
        prober.now = RouteStatus(gateways=("10.0.0.1",), activators=2, held=3)
        world.controller.wake("default/resnet")
        await world.run_for(0.1)
        assert at(1, world)
        assert "3 requests are held" in world.status()["decision"]["message"]
        await world.run_for(4.0)
        warned = [one["reason"] for one in world.cluster.events() if one["type"] == "Warning"]
        assert warned == [], "a start that was requested is no fault"
        assert world.condition("Ready") == ("False", "WarmingUp")
        assert "0 of 1 replicas are ready, 3 requests are held" in world.message("Ready")
        await world.run_for(26.0)
        prober.now = RouteStatus(gateways=("10.0.0.1",), activators=2)
        await world.run_for(50.0)
        assert at(1, world)  # quiet for less than a minute since

    play(scenario, prober)


@pytest.mark.parametrize(
    ("why", "standing", "silent"),
    [
        pytest.param("signals are not fresh", RouteStatus(gateways=("a",), activators=1), True),
        pytest.param(
            "a request is held", RouteStatus(gateways=("a",), activators=1, held=1), False
        ),
        pytest.param("no activator would hold", RouteStatus(gateways=("a",), activators=0), False),
        pytest.param("no gateway leads there", RouteStatus(gateways=(), activators=1), False),
    ],
)
def test_last_replica_is_kept_while(why: str, standing: RouteStatus, silent: bool) -> None:
    prober = GatewayProber()

    async def scenario(world: World) -> None:
        world.create(routing=GATEWAY, scaling=ZERO)
        await world.run_for(40.0)
        prober.now = standing
        world.pods.silent = silent
        await world.run_for(300.0)
        assert at(1, world), why

    play(scenario, prober)


def test_missing_activator_brings_one_replica_back() -> None:
    """A rollout of the activators takes less than the patience of 30 s; their loss does not."""
    prober = GatewayProber()

    async def scenario(world: World) -> None:
        world.create(routing=GATEWAY, scaling=ZERO)
        await world.run_for(120.0)
        assert at(0, world)
        prober.now = RouteStatus(gateways=("10.0.0.1",), activators=0)
        await world.run_for(20.0)
        assert at(0, world)
        assert world.condition("RoutingReady") == ("False", "NoActivator")
        assert world.condition("Ready") == ("True", "ScaledToZero")
        for kind in ("Ready", "ScalingActive"):
            assert "no activator holds requests: they fail" in world.message(kind)
        await world.run_for(15.0)
        assert at(1, world)

    play(scenario, prober)


def test_restart_at_zero_keeps_zero() -> None:
    async def scenario(world: World) -> None:
        world.create(routing=GATEWAY, scaling=ZERO)
        await world.run_for(120.0)
        assert at(0, world)
        await world.restart_operator()
        await world.run_for(60.0)
        assert at(0, world)

    play(scenario, GatewayProber())


def test_min_replicas_above_zero_is_unaffected() -> None:
    async def scenario(world: World) -> None:
        world.create(routing=GATEWAY, scaling={"scaleToZero": {"idleTimeout": "10s"}})
        world.create("plain")
        await world.run_for(600.0)
        assert (world.replicas(), world.replicas("plain")) == (1, 1)
        assert world.condition("RoutingReady") == ("True", "ViaGateway")
        assert world.condition("RoutingReady", "plain") == ("True", "DirectToPods")

    play(scenario, GatewayProber())


@pytest.mark.parametrize(
    ("cold_start_s", "rate_rps", "misses"),
    [
        pytest.param(10.0, 2.0, 20.0, id="the first, and 9.5 s of 2/s"),
        pytest.param(10.0, None, 1.0, id="the arrival rate is unknown"),
        pytest.param(0.4, 2.0, 0.0, id="a start within the target"),
        pytest.param(None, 2.0, None, id="no start was measured"),
    ],
)
def test_misses_per_cold_start(
    cold_start_s: float | None, rate_rps: float | None, misses: float | None
) -> None:
    assert misses_per_cold_start(cold_start_s, 0.5, rate_rps) == misses
