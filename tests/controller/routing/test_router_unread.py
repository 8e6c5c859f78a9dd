"""A namespace that cannot be read after a restart keeps its routes, and no other waits for it."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest

from headroom.adapters.gateways.xds_server.stream_state import DiscoveryRequest, StreamState
from headroom.controller.routing import port_numbers
from headroom.controller.routing.vacant_ports import VacantPorts
from headroom.controller.services.resync import Resync
from headroom.controller.services.service_cache import ServiceCache
from headroom.errors import Forbidden
from headroom.gateway import Snapshot
from headroom.gateway.activator_messages import Served, read, services_body
from headroom.gateway.bootstrap.configuration import OPS_PORT
from headroom.gateway.snapshot import KINDS
from headroom.resources import endpoint_slice
from support.cluster_world import FakeClock, FakeCluster, Manifest
from support.fakes_routing import (
    GATEWAY_ADDRESS,
    NAMESPACE,
    PublishedRoutes,
    RoutedWorld,
    becomes,
    play,
    replica_pod,
)
from support.service_world import body, service

DARK = "dark"
"""The namespace that may not be read."""


class Refusing(FakeCluster):
    """Refuses lists of kinds in a namespace."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.refused: frozenset[str] = frozenset()

    async def list_all(
        self,
        api_version: str,
        kind: str,
        namespace: str | None,
        label_selector: str = "",
        kept: Callable[[Manifest], Manifest | None] = lambda one: one,
    ) -> list[Manifest]:
        if namespace == DARK and kind in self.refused:
            raise Forbidden(f"{kind} cannot be listed in {DARK}")
        return await super().list_all(api_version, kind, namespace, label_selector, kept)


class OneGateway(PublishedRoutes):
    """State of a gateway and an activator, which outlive the operator."""

    def __init__(self) -> None:
        super().__init__()
        self.has: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
        self.activator: tuple[Served, ...] = ()
        self.ports: dict[str, int] = {}
        """Ports of the listeners, by service."""

    def publish(self, what: Snapshot | Iterable[Served], kept: Collection[str] = ()) -> None:
        if not isinstance(what, Snapshot):
            self.activator = read(services_body(what, kept)[1]).after(self.activator)
            return
        self.snapshot, state = what, StreamState()
        for kind, has in self.has.items():
            state.on_request(DiscoveryRequest(kind=kind, has=has))
            versions = {name: one.version for name, one in what.resources[kind].items()}
            delta = state.delta(kind, versions, what.keeps)
            has |= {name: versions[name] for name in delta.changed}
            for name in delta.removed:
                del has[name]
        for name, one in what.resources["listeners"].items():
            self.ports[name] = json.loads(one.body)["address"]["socket_address"]["port_value"]

    async def is_open(self, address: str, port: int) -> bool:
        """Accept connections as Envoy does."""
        ports = {self.ports[name] for name in self.has["listeners"]}
        return address == GATEWAY_ADDRESS and port in {OPS_PORT, *ports}

    def routes(self) -> list[str]:
        """Return what the gateway has endpoints of."""
        return sorted(self.has["endpoints"])

    def held_at(self) -> list[str]:
        """Return the services of the activator."""
        return sorted(one.key for one in self.activator)


class TwoNamespaces(RoutedWorld):
    """A service in each of two namespaces; the operator lists them itself."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = self.refusing = Refusing(self.clock)
        self.gateway = self.published = OneGateway()
        self.router.publisher = self.router.activators = self.router.probe = self.gateway
        self.router.namespaces = [DARK, NAMESPACE]
        self.resyncing: asyncio.Task[None] | None = None
        for namespace in self.router.namespaces:
            self.add("ranker", namespace)

    def add(self, name: str, namespace: str) -> str:
        named = {"metadata__name": name, "metadata__namespace": namespace}
        return str(
            self.cluster.put(body(**named, spec__routing={"mode": "Gateway"}))["metadata"]["uid"]
        )

    def start_operator(self) -> None:
        self.cache = ServiceCache(on_change=lambda _: self.router.changed(), on_gone=lambda _: None)
        resync = Resync(
            self.cluster,
            self.cache,
            self.router.namespaces,
            chance=random.Random(7),
            on_unlisted=lambda _: self.router.changed(),
        )
        self.resyncing = asyncio.create_task(resync.run())
        self.lead()

    async def end(self) -> None:
        if self.resyncing is not None:
            self.resyncing.cancel()
        await super().end()

    async def restart_operator(self) -> None:
        await self.end()
        self.start_operator()

    def port(self, uid: str) -> int | None:
        routed = self.router._table.routed.get(uid)
        return None if routed is None else routed.port


BOTH = [f"{DARK}/ranker", f"{NAMESPACE}/ranker"]


def test_others_are_routed_while_a_namespace_cannot_be_read() -> None:
    async def scenario(world: TwoNamespaces) -> None:
        world.refusing.refused = frozenset({"InferenceService", "EndpointSlice"})
        world.start_operator()
        await becomes(lambda: world.gateway.routes() == [f"{NAMESPACE}/ranker"], within_s=3.0)

    play(TwoNamespaces, scenario)


@pytest.mark.parametrize("slices_too", [False, True])
def test_gateways_and_activators_keep_what_they_have_of_it(slices_too: bool) -> None:
    async def scenario(world: TwoNamespaces) -> None:
        world.start_operator()
        await becomes(lambda: world.gateway.routes() == BOTH)
        await becomes(lambda: world.cluster.find("EndpointSlice", "ranker-gateway", NAMESPACE))
        before = {kind: dict(has) for kind, has in world.gateway.has.items()}
        world.refusing.refused = frozenset(
            {"InferenceService", *(["EndpointSlice"] if slices_too else [])}
        )
        await world.restart_operator()
        world.add("second", NAMESPACE)
        await becomes(lambda: f"{NAMESPACE}/second" in world.gateway.routes())
        assert world.gateway.routes() == [*BOTH, f"{NAMESPACE}/second"]
        assert world.gateway.held_at() == world.gateway.routes()
        for kind in ("clusters", "listeners", "endpoints"):
            assert before[kind].items() <= world.gateway.has[kind].items()

        world.cluster.delete("InferenceService", "second", NAMESPACE)
        await becomes(lambda: world.gateway.routes() == BOTH)
        assert world.gateway.held_at() == BOTH

    play(TwoNamespaces, scenario)


def test_it_goes_on_with_its_port_once_it_can_be_read() -> None:
    async def scenario(world: TwoNamespaces) -> None:
        uid = world.cluster.objects["InferenceService", DARK, "ranker"]["metadata"]["uid"]
        world.start_operator()
        await becomes(lambda: world.cluster.find("EndpointSlice", "ranker-gateway", DARK))
        port, versions = world.port(uid), dict(world.gateway.has["listeners"])
        world.refusing.refused = frozenset({"InferenceService"})
        await world.restart_operator()
        await asyncio.sleep(60.0)
        assert world.port(uid) is None
        world.refusing.refused = frozenset()
        await becomes(lambda: world.port(uid) is not None, within_s=40.0)
        assert world.port(uid) == port
        await asyncio.sleep(10.0)
        assert world.gateway.has["listeners"] == versions

        world.cluster.delete("InferenceService", "ranker", DARK)
        await becomes(lambda: world.gateway.routes() == [f"{NAMESPACE}/ranker"])

    play(TwoNamespaces, scenario)


def test_what_was_deleted_meanwhile_is_removed_once_it_can_be_read() -> None:
    async def scenario(world: TwoNamespaces) -> None:
        world.start_operator()
        await becomes(lambda: world.gateway.routes() == BOTH)
        world.refusing.refused = frozenset({"InferenceService"})
        await world.restart_operator()
        world.cluster.delete("InferenceService", "ranker", DARK)
        await asyncio.sleep(60.0)
        assert world.gateway.routes() == BOTH
        world.refusing.refused = frozenset()
        await becomes(lambda: world.gateway.routes() == [f"{NAMESPACE}/ranker"], within_s=40.0)
        assert world.gateway.held_at() == [f"{NAMESPACE}/ranker"]

    play(TwoNamespaces, scenario)


def test_port_that_its_slice_records_is_given_to_no_other() -> None:
    async def scenario(world: TwoNamespaces) -> None:
        new = "a-new-service"
        wanted = port_numbers.choose(new, ())
        assert wanted is not None
        owner = service(metadata__name="ranker", metadata__namespace=DARK)
        world.cluster.put(endpoint_slice.build(owner, [GATEWAY_ADDRESS], wanted))
        world.refusing.refused = frozenset({"InferenceService"})
        world.start_operator()
        named = {"metadata__name": new, "metadata__namespace": NAMESPACE, "metadata__uid": new}
        await becomes(world.cache.synced.is_set)
        world.see(body(**named, spec__routing={"mode": "Gateway"}))
        await becomes(lambda: world.port(new) is not None)
        assert world.port(new) == wanted + 1
        layer: Any = world.gateway.snapshot
        assert f"listener.{DARK}/ranker.connection_limit" in (
            layer.resources["runtime"]["in-flight"].body.decode()
        )

    play(TwoNamespaces, scenario)


def test_port_at_which_a_gateway_listens_already_is_given_to_no_other() -> None:
    """Nothing else says which ports a namespace has whose slices cannot be read either."""
    tried: list[int] = []

    class Open:
        async def is_open(self, address: str, port: int) -> bool:
            assert address == GATEWAY_ADDRESS
            tried.append(port)
            return port == 20_000

    class Gates:
        def ready(self, namespace: str) -> list[Any]:
            return [type("Pod", (), {"address": GATEWAY_ADDRESS})] if namespace == "system" else []

    async def scenario() -> None:
        unread = {DARK}
        gates: Any = Gates()
        vacant = VacantPorts(gates, "system", Open(), unread)
        assert [vacant.is_vacant(port) for port in (20_000, 20_001)] == [None, None]
        assert await vacant.look()
        assert [vacant.is_vacant(port) for port in (20_000, 20_001)] == [False, True]
        assert not await vacant.look()
        unread.clear()
        assert vacant.is_vacant(20_000)

    asyncio.run(scenario())
    assert sorted(tried) == [20_000, 20_001]


def test_replicas_that_are_not_known_yet_are_routed_to_as_before() -> None:
    async def scenario(world: TwoNamespaces) -> None:
        labels = replica_pod()["metadata"]["labels"] | {"headroom.dev/inference-service": "ranker"}
        owner = [{"controller": True, "kind": "ReplicaSet", "name": "ranker-abc"}]
        pod = replica_pod(namespace=DARK, labels=labels, ownerReferences=owner)
        world.router.replicas = _Listed(pod)
        world.start_operator()
        await becomes(lambda: world.published.hosts(f"{DARK}/ranker") == ["10.0.0.1:8000"])
        version = world.gateway.has["endpoints"][f"{DARK}/ranker"]
        unlisted = {DARK}
        world.router.replicas, world.router.unlisted = _Listed(), lambda: unlisted
        await world.restart_operator()
        await asyncio.sleep(60.0)
        assert world.gateway.has["endpoints"][f"{DARK}/ranker"] == version
        assert f"{DARK}/ranker" in world.gateway.held_at()
        unlisted.clear()
        await becomes(lambda: world.gateway.has["endpoints"][f"{DARK}/ranker"] != version)

    play(TwoNamespaces, scenario)


class _Listed:
    def __init__(self, *pods: Manifest) -> None:
        self.pods = pods

    async def run(self, on_list: Callable[[list[Manifest]], None], _: object) -> None:
        on_list(list(self.pods))
        await asyncio.Event().wait()
