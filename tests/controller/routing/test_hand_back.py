"""Gateways that are switched off, and on again: Services lead to replicas, then to gateways."""

from __future__ import annotations

import asyncio
import logging
from copy import deepcopy

import pytest

from controller.routing.test_router_targets import LABELS, ROUTED
from controller.routing.test_router_targets import World as TargetWorld
from headroom.controller.routing.hand_back import LOOK_EVERY_S, HandBack
from headroom.errors import ClusterError, Forbidden, Unavailable
from headroom.resources.endpoint_slice import MANAGED_BY_LABEL, SERVICE_NAME_LABEL
from headroom.resources.names import selector_labels
from support.fakes_routing import GATEWAY_ADDRESS, NAMESPACE, becomes, play
from support.service_world import body, service


class World(TargetWorld):
    """A service of each kind behind the gateway, which can be switched off and on."""

    def __init__(self) -> None:
        super().__init__()
        self.listeners.open = {GATEWAY_ADDRESS}
        self.pod("a", "10.0.0.1")
        self.mode("Gateway")
        owned = body(metadata__name="own", metadata__uid="own", spec__routing={"mode": "Gateway"})
        self.cluster.put(owned)
        self.see(owned)
        self.names = ("llm-gateway", "own")

    async def switch_on(self) -> None:
        """Start an operator with gateways, and wait until every service leads to one."""
        await self.end()
        self.routing = self.router
        self.lead()
        await becomes(lambda: all(self.leads_to(one) == {GATEWAY_ADDRESS} for one in self.names))
        await becomes(lambda: all(self.selects(one) == ROUTED for one in self.names))

    async def switch_off(self) -> HandBack:
        """Replace it by an operator without gateways."""
        await self.end()
        back = HandBack(probe=self.listeners, clock=self.clock)
        self.routing = back
        self.lead()
        await asyncio.sleep(1.0)
        return back

    def leads_to(self, name: str) -> set[str]:
        """Return the addresses in the operator's slice of a Service."""
        found = self.cluster.find("EndpointSlice", f"{name}-gateway", NAMESPACE)
        return {at for entry in found["endpoints"] for at in entry["addresses"]} if found else set()

    def selects(self, name: str) -> dict[str, str]:
        found = self.cluster.find("Service", name, NAMESPACE)
        return found["spec"]["selector"] if found else {}

    def kubernetes_finds_replicas(self, *names: str) -> None:
        """Let Kubernetes' own controller write a slice of Services, with a ready replica."""
        for name in names or self.names:
            labels = {
                SERVICE_NAME_LABEL: name,
                MANAGED_BY_LABEL: "endpointslice-controller.k8s.io",
            }
            ready = {"addresses": ["10.0.0.1"], "conditions": {"ready": True}}
            self.cluster.put(
                {
                    "apiVersion": "discovery.k8s.io/v1",
                    "kind": "EndpointSlice",
                    "metadata": {"name": f"{name}-k8s", "namespace": NAMESPACE, "labels": labels},
                    "endpoints": [ready],
                }
            )


def test_services_lead_to_their_replicas_before_they_leave_a_gateway_that_is_removed() -> None:
    async def scenario(world: World) -> None:
        await world.switch_on()
        await world.switch_off()
        assert world.selects("llm-gateway") == LABELS
        assert world.selects("own") == selector_labels("own")
        assert all(world.leads_to(one) == {GATEWAY_ADDRESS} for one in world.names)
        world.kubernetes_finds_replicas()
        await becomes(lambda: not any(world.leads_to(one) for one in world.names))
        assert world.theirs == world.child("Service", "llm")["metadata"]["resourceVersion"]

    play(World, scenario)


def test_gateway_that_is_gone_is_left_at_once() -> None:
    async def scenario(world: World) -> None:
        await world.switch_on()
        world.listeners.open.clear()
        await world.switch_off()
        assert not any(world.leads_to(one) for one in world.names)

    play(World, scenario)


def test_gateways_that_are_removed_before_their_operator_are_left_as_well() -> None:
    async def scenario(world: World) -> None:
        await world.switch_on()
        world.gates.tell("DELETED", world.gates.pods[0])
        await becomes(lambda: world.selects("own") == selector_labels("own"))
        await asyncio.sleep(1.0)
        assert all(world.leads_to(one) == {GATEWAY_ADDRESS} for one in world.names)
        world.kubernetes_finds_replicas()
        await becomes(lambda: not any(world.leads_to(one) for one in world.names))

    play(World, scenario)


def test_service_without_a_ready_replica_delays_no_other() -> None:
    async def scenario(world: World) -> None:
        await world.switch_on()
        late = deepcopy(world.child("EndpointSlice", "own-gateway"))
        world.kubernetes_finds_replicas("own")
        await world.switch_off()
        await becomes(lambda: not world.leads_to("own"))
        world.cluster.put(late)  # written by the operator before, while it ended
        assert world.leads_to("own") == {GATEWAY_ADDRESS}
        await becomes(lambda: not world.leads_to("own"), within_s=LOOK_EVERY_S + 5.0)
        assert world.leads_to("llm-gateway") == {GATEWAY_ADDRESS}
        world.kubernetes_finds_replicas("llm-gateway")
        await becomes(lambda: not world.leads_to("llm-gateway"))

    play(World, scenario)


def test_gateways_that_are_switched_on_again_are_used_again() -> None:
    async def scenario(world: World) -> None:
        for _ in range(2):
            await world.switch_on()
            world.kubernetes_finds_replicas()
            await world.switch_off()
            await becomes(lambda: not any(world.leads_to(one) for one in world.names))

    play(World, scenario)


@pytest.mark.parametrize(
    ("error", "after_s"), [(Unavailable("down"), 1.0), (Forbidden("no"), LOOK_EVERY_S)]
)
def test_slices_that_could_not_be_read_are_read_again(
    error: ClusterError, after_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        await world.switch_on()
        world.kubernetes_finds_replicas()
        world.cluster.fail("list_all", "EndpointSlice", error, times=1)
        await world.switch_off()
        await asyncio.sleep(after_s)
        await becomes(lambda: not any(world.leads_to(one) for one in world.names), within_s=3.0)

    with caplog.at_level(logging.WARNING):
        play(World, scenario)
    assert "slices of earlier gateways could not be read" in caplog.text


def test_throttling_is_kept_and_an_outage_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        await world.switch_on()
        world.kubernetes_finds_replicas()
        throttled = Unavailable("too many requests", retry_after_s=30.0)
        world.cluster.fail("list_all", "EndpointSlice", throttled, times=20)
        await world.switch_off()
        await asyncio.sleep(590.0)
        assert all(world.leads_to(one) == {GATEWAY_ADDRESS} for one in world.names)
        await becomes(lambda: not any(world.leads_to(one) for one in world.names), within_s=12.0)

    play(World, scenario)
    assert caplog.text.count("too many requests") == 1


def test_service_that_cannot_be_written_says_that_it_leads_to_a_removed_gateway() -> None:
    async def scenario(world: World) -> None:
        await world.switch_on()
        world.kubernetes_finds_replicas()
        world.cluster.fail("apply", "EndpointSlice", Forbidden("may not patch"), times=9)
        back = await world.switch_off()
        status = back.route_status(service(metadata__name="own", metadata__uid="own"))
        assert (status.gateways, status.trouble) == ((GATEWAY_ADDRESS,), "may not patch")

    play(World, scenario)
