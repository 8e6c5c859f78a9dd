"""In Gateway mode the promise is judged where clients are; replicas go on feeding the model."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

import numpy as np
import pytest

from headroom.api import InferenceService
from headroom.controller.decide.gateway_slo import GatewaySLI, bounds_s
from headroom.controller.gather.gateways.gateway_counters import GatewayCounters
from headroom.controller.gather.gateways.route_status import RouteStatus
from headroom.gateway.listener.access_counts import Bin, ServiceCounters, read
from headroom.scaling import Policy
from headroom.scaling.values.signals import Freshness, Signal, Signals
from support.controller_world import REPLICA_RPS, SilentRouter, World, play

KEY = "default/resnet"


class Gateways(SilentRouter):
    """A router that leads to two gateways, of which the first has all requests."""

    def __init__(self) -> None:
        self.counters = GatewayCounters()
        self.rate_rps = 0.0
        self.took_us = Bin(400_000, 410_000)
        self.rejected_rps = 0.0
        self.silent = False
        self._arrived = self._rejected = 0.0
        self._answered: dict[Bin, float] = {}

    def route_status(self, service: InferenceService) -> RouteStatus:
        if service.spec.routing.mode == "Service":
            return RouteStatus(totals=self.counters.of(KEY))
        return RouteStatus(gateways=("10.0.0.1",), totals=self.counters.of(KEY))

    async def count(self, world: World) -> None:
        while True:
            self.counters.set_gateways(["a", "b"], world.clock.now_s())
            self._arrived += self.rate_rps + self.rejected_rps
            self._rejected += self.rejected_rps
            answered = self._answered.get(self.took_us, 0.0) + self.rate_rps
            self._answered[self.took_us] = answered
            missed = int(self._rejected)
            page = ServiceCounters(
                arrived=int(self._arrived),
                missed=missed,
                rejected=missed,
                answered={one: int(number) for one, number in self._answered.items()},
            )
            if self.silent:
                self.counters.mark_failed("a", "10.0.0.1 answered 503")
            else:
                self.counters.add_page("a", {KEY: page}, world.clock.now_s())
            self.counters.add_page("b", {}, world.clock.now_s())
            await asyncio.sleep(1.0)


def tell(scenario: Any) -> None:
    """Play a scenario with gateways that count."""
    gateways = Gateways()

    async def counted(world: World) -> None:
        counting = asyncio.create_task(gateways.count(world))
        try:
            await scenario(world, gateways)
        finally:
            counting.cancel()

    play(counted, router=gateways)


def test_slo_in_gateway_mode_is_measured_at_the_gateway() -> None:
    async def scenario(world: World, gateways: Gateways) -> None:
        world.create(routing={"mode": "Gateway"}, scaling={"minReplicas": 2})
        world.pods.arrivals_rps["resnet"] = gateways.rate_rps = 0.3 * REPLICA_RPS
        await world.run_for(60.0)
        signals = world.status()["signals"]
        assert signals["latencySource"] == "Gateway"
        assert 0.40 <= float(signals["latency"].removesuffix("ms")) / 1000 <= 0.45
        assert signals["gateway"]["arrivalsPerSecond"] == pytest.approx(gateways.rate_rps, rel=0.2)
        assert signals["gateway"]["freshness"] == "Fresh"
        assert world.condition("SLOMet") == ("True", "WithinTarget")
        assert "at the gateway, the target is 1.5s" in world.message("SLOMet")
        # The replicas are as quick as before; what lies between them and the clients is slow.
        gateways.took_us = Bin(2_000_000, 2_100_000)
        await world.run_for(90.0)
        assert world.condition("SLOMet") == ("False", "AboveTarget")
        assert "the model expects 2 replicas to be enough" in world.message("SLOMet")
        assert "learned latency correction" in world.message("SLOMet")
        assert world.recorder.minutes[-1] is False
        assert world.replicas() == 2
        world.edit(routing={"mode": "Service"}, scaling={"minReplicas": 2})
        await world.run_for(10.0)
        assert world.status()["signals"]["latencySource"] == "Replicas"
        assert "gateway" not in world.status()["signals"]
        assert world.recorder.rates == {}
        assert world.condition("SLOMet") == ("True", "WithinTarget")

    tell(scenario)


def test_rejections_at_the_gateway_count_as_demand() -> None:
    async def scenario(world: World, gateways: Gateways) -> None:
        world.create(routing={"mode": "Gateway"})
        world.pods.arrivals_rps["resnet"] = gateways.rate_rps = 0.5 * REPLICA_RPS
        await world.run_for(60.0)
        before = world.replicas()
        gateways.rejected_rps = 2.0 * REPLICA_RPS
        await world.run_for(30.0)
        assert world.replicas() >= before + 2
        assert world.status()["signals"]["latency"] == "unbounded"
        assert world.status()["signals"]["gateway"]["missedPerSecond"] > REPLICA_RPS
        rates = world.recorder.rates
        assert rates["arrived"] == pytest.approx(2.5 * REPLICA_RPS, rel=0.2)
        assert rates["missed"] == pytest.approx(2.0 * REPLICA_RPS, rel=0.2)

    tell(scenario)


def test_removal_while_a_gateway_is_silent_is_held() -> None:
    async def scenario(world: World, gateways: Gateways) -> None:
        world.create(routing={"mode": "Gateway"}, scaling={"minReplicas": 1})
        world.pods.arrivals_rps["resnet"] = gateways.rate_rps = 2.5 * REPLICA_RPS
        await world.run_for(120.0)
        stood = world.replicas()
        assert stood > 1
        gateways.silent = True
        world.pods.arrivals_rps["resnet"] = 0.1 * REPLICA_RPS
        await world.run_for(300.0)
        assert world.replicas() == stood
        assert world.condition("MetricsAvailable") == ("False", "MetricsStale")
        assert "a: 10.0.0.1 answered 503" in world.message("MetricsAvailable")
        assert world.condition("SLOMet") == ("Unknown", "MetricsMissing")
        assert "latency" not in world.status()["signals"]
        assert world.status()["decision"]["reason"] == "MetricsStale"
        gateways.silent, gateways.rate_rps = False, 0.1 * REPLICA_RPS
        await world.run_for(120.0)
        assert world.replicas() < stood

    tell(scenario)


def test_gateway_that_most_requests_bypass_is_named_and_does_not_measure_the_slo() -> None:
    async def scenario(world: World, gateways: Gateways) -> None:
        world.create_workload("own", replicas=2)
        world.create(target="own", routing={"mode": "Gateway"}, scaling={"minReplicas": 2})
        world.pods.arrivals_rps["own"] = REPLICA_RPS
        gateways.took_us = Bin(2_000_000, 2_100_000)
        await world.run_for(60.0)
        assert world.condition("RoutingReady") == ("False", "GatewayBypassed")
        assert "point clients to Service resnet-gateway, port 80" in world.message("RoutingReady")
        assert world.status()["signals"]["latencySource"] == "Replicas"
        assert world.condition("SLOMet") == ("True", "WithinTarget")

        gateways.rate_rps = 0.5 * REPLICA_RPS  # half of it: nothing changes yet
        await world.run_for(60.0)
        assert world.condition("RoutingReady") == ("False", "GatewayBypassed")
        gateways.rate_rps = 0.9 * REPLICA_RPS
        await world.run_for(90.0)
        assert world.condition("RoutingReady") == ("True", "ViaGateway")
        assert world.status()["signals"]["latencySource"] == "Gateway"
        assert world.condition("SLOMet") == ("False", "AboveTarget")
        gateways.rate_rps = 0.5 * REPLICA_RPS
        await world.run_for(90.0)
        assert world.condition("RoutingReady") == ("True", "ViaGateway")

    tell(scenario)


@pytest.mark.parametrize("restart_s", [None, 360.0])
def test_gateway_whose_requests_last_a_minute_is_not_bypassed(restart_s: float | None) -> None:
    """All 2, later 10 requests a second go through it; a restart cuts off those in flight."""
    policy = Policy(latency_target_s=120.0)
    counters, known = GatewayCounters(), GatewaySLI()

    def begun(now_s: float) -> int:
        return int(2.0 * now_s + 8.0 * max(0.0, now_s - 300.0))

    for now_s in np.arange(0.0, 600.0, 2.0):
        arrived = begun(now_s)
        before = begun(restart_s) if restart_s is not None and now_s > restart_s else 0
        ended = max(0, begun(max(0.0, now_s - 60.0)) - before)
        stats = [
            {"name": f"cluster.{KEY}.upstream_rq_active", "value": arrived - before - ended},
            {"name": f"headroom.requests.service.{KEY}.to.{KEY}.code.200.flags.-.grpc.-"}
            | {"value": ended},
        ]
        counters.set_gateways(["a"], now_s)
        counters.add_page("a", read(json.dumps({"stats": stats})), now_s)
        rps = (arrived - begun(max(0.0, now_s - 30.0))) / 30.0
        seen = Signal(freshness=Freshness.FRESH, value=rps, age_s=0.0)
        known = known.observe(policy, counters.of(KEY), now_s).compared(Signals(arrival_rps=seen))
        assert not known.bypassed, now_s
    assert known.rates["arrived"] == pytest.approx(10.0, rel=0.02)


def test_idle_target_does_not_bypass_its_gateway() -> None:
    async def scenario(world: World, gateways: Gateways) -> None:
        world.create_workload("own", replicas=2)
        world.create(target="own", routing={"mode": "Gateway"}, scaling={"minReplicas": 2})
        await world.run_for(60.0)
        assert world.condition("RoutingReady") == ("True", "ViaGateway")

    tell(scenario)


def test_gateway_buckets_surround_the_target() -> None:
    bounds = bounds_s(0.25)
    assert 0.25 in bounds
    assert bounds[-1] == math.inf
    assert list(bounds) == sorted(bounds)
    assert bounds[0] < 0.001
    assert bounds[-2] > 90
    assert len(bounds) == 54
