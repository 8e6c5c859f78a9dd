"""A service that gives way to others is led to its replicas before its gateway forgets it."""

from __future__ import annotations

import asyncio

from controller.routing.test_router_targets import ROUTED
from headroom.controller.act.child_writer import ChildWriter
from headroom.controller.routing.gateway_probe import GatewayProber
from headroom.controller.routing.handover import RETIRED_AFTER_S
from headroom.controller.routing.ready_pods import ReadyPodIndex
from headroom.controller.routing.route_writer import Routed, RouteWriter
from headroom.resources.endpoint_slice import MANAGED_BY_LABEL, SERVICE_NAME_LABEL
from support.cluster_world import FakeClock, FakeCluster, Manifest
from support.fakes_routing import GATEWAY_ADDRESS, NAMESPACE, Listeners, ready_pod
from support.service_world import service

SYSTEM = "headroom-system"
FOUND_BY_KUBERNETES: Manifest = {
    "apiVersion": "discovery.k8s.io/v1",
    "kind": "EndpointSlice",
    "metadata": {
        "name": "resnet50-k8s",
        "namespace": NAMESPACE,
        "labels": {
            SERVICE_NAME_LABEL: "resnet50",
            MANAGED_BY_LABEL: "endpointslice-controller.k8s.io",
        },
    },
    "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": True}}],
}


class NoTargets:
    """No service has a targetRef."""

    def selector(self, uid: str) -> dict[str, str] | None:
        return None


class World:
    """A cluster with one gateway that listens, and a service in Gateway mode."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.cluster = FakeCluster(self.clock)
        listeners, gates = Listeners(), ReadyPodIndex(lambda: None)
        listeners.open = {GATEWAY_ADDRESS}
        gateway = ready_pod("g1", GATEWAY_ADDRESS)
        gateway["metadata"]["namespace"] = SYSTEM
        gates.replace([gateway])
        prober = GatewayProber(gates, SYSTEM, listeners)
        self.writer = RouteWriter(self.cluster, NoTargets(), prober, self.clock)
        self.service = service(spec__routing={"mode": "Gateway"})
        self.routed = Routed(port=20001, writer=ChildWriter())

    async def step(self) -> tuple[bool, tuple[str, ...]]:
        """Take a step; return whether the Service selects replicas, and what its slice has."""
        await self.writer.converge(self.service, self.routed)
        found = self.cluster.find("Service", "resnet50", NAMESPACE)
        assert found is not None
        return found["spec"]["selector"] != ROUTED, self.routed.addresses


def test_service_that_gives_way_is_led_to_its_replicas_first_and_may_come_back() -> None:
    async def scenario() -> None:
        world = World()
        to_gateway, routed = (GATEWAY_ADDRESS,), world.routed
        selects, leads = await world.step()
        assert leads == to_gateway
        assert not selects
        routed.direct = True
        assert await world.step() == (True, to_gateway), "no replica is known yet"
        assert routed.is_in_use(world.clock.now_s())
        world.cluster.put(FOUND_BY_KUBERNETES)
        assert await world.step() == (True, ())
        assert routed.is_in_use(world.clock.now_s()), "connections are under way"
        world.clock.ahead_s += RETIRED_AFTER_S
        assert await world.step() == (True, ())
        assert not routed.is_in_use(world.clock.now_s())
        routed.direct = False
        assert await world.step() == (False, to_gateway)
        assert routed.emptied_s is None

    asyncio.run(scenario())
