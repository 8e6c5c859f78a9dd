"""Fakes for a router, in memory: pods on a watch, and the routes that gateways receive."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from headroom.controller.routing import Router
from headroom.controller.routing.ports import OnEvent, OnList, Routing
from headroom.controller.services.service_cache import ServiceCache
from headroom.gateway import Snapshot
from headroom.gateway.activator_messages import Served
from headroom.resources.names import SERVICE_LABEL
from support.cluster_world import FakeClock, FakeCluster, Manifest, copied
from support.virtual_time import VirtualTimeLoop

NAMESPACE = "vision"
GATEWAY_ADDRESS = "10.0.9.1"
W = TypeVar("W", bound="RoutedWorld")


class PodsOf:
    """A watch of the pods of a fake cluster that a selector selects."""

    def __init__(self, cluster: FakeCluster, namespace: str, selector: str) -> None:
        self.cluster, self.namespace, self.selector = cluster, namespace, selector

    async def run(self, on_list: OnList, on_event: OnEvent) -> None:
        wanted = dict(pair.split("=") for pair in self.selector.split(","))
        before = self.cluster.on_change

        def changed(event: str, one: Manifest) -> None:
            before(event, one)
            if self._selects(one, wanted):
                on_event(event, copied(one))

        on_list([copied(o) for o in self.cluster.objects.values() if self._selects(o, wanted)])
        self.cluster.on_change = changed
        await asyncio.Event().wait()

    def _selects(self, one: Manifest, wanted: Mapping[str, str]) -> bool:
        metadata = one["metadata"]
        labels = metadata.get("labels") or {}
        return (
            one["kind"] == "Pod"
            and metadata["namespace"] == self.namespace
            and all(labels.get(key) == value for key, value in wanted.items())
        )


class Listed:
    """A watch with pods that change only when a test says so."""

    def __init__(self, *pods: Manifest) -> None:
        self.pods = pods
        self.tell: OnEvent = lambda _event, _pod: None

    async def run(self, on_list: OnList, on_event: OnEvent) -> None:
        self.tell = on_event
        on_list(list(self.pods))
        await asyncio.Event().wait()


class NoActivators:
    """No activator holds a request."""

    def publish(self, what: Snapshot | Iterable[Served], kept: Collection[str] = ()) -> None:
        pass

    def withdraw(self) -> None:
        pass

    def accepting(self, port: int) -> tuple[str, ...]:
        return ()

    def held(self, key: str) -> int:
        return 0

    def arrived(self, key: str) -> int:
        return 0


class PublishedRoutes(NoActivators):
    """Records what the gateways and activators receive; there is no activator."""

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None

    def publish(self, what: Snapshot | Iterable[Served], kept: Collection[str] = ()) -> None:
        if isinstance(what, Snapshot):
            self.snapshot = what

    def hosts(self, key: str) -> list[str] | None:
        """Return where a service's replicas are; None where the gateways do not know it."""
        if self.snapshot is None or key not in self.snapshot.resources["endpoints"]:
            return None
        found: Any = json.loads(self.snapshot.resources["endpoints"][key].body)
        sockets = [
            host["endpoint"]["address"]["socket_address"]
            for locality in found["endpoints"]
            for host in locality["lb_endpoints"]
        ]
        return sorted(f"{one['address']}:{one['port_value']}" for one in sockets)


class Listeners:
    """Addresses that accept connections."""

    def __init__(self) -> None:
        self.open: set[str] = set()

    async def is_open(self, address: str, port: int) -> bool:
        return address in self.open


def ready_pod(name: str, address: str, **metadata: Any) -> Manifest:
    status = {"podIP": address, "conditions": [{"type": "Ready", "status": "True"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": name, **metadata},
        "status": status,
    }


def replica_pod(**metadata: object) -> Manifest:
    """Return a ready pod of the service `vision/resnet50`, as the API server describes it."""
    named: Manifest = {
        "uid": "p1",
        "name": "resnet50-abc-1",
        "namespace": NAMESPACE,
        "labels": {SERVICE_LABEL: "resnet50", "pod-template-hash": "abc"},
        "ownerReferences": [{"controller": True, "kind": "ReplicaSet", "name": "resnet50-abc"}],
    }
    status = {"podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": named | metadata, "status": status}


class RoutedWorld:
    """A router that leads, its cluster, and one gateway."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.cluster = FakeCluster(self.clock)
        self.published, self.listeners = PublishedRoutes(), Listeners()
        self.cache = ServiceCache(on_change=lambda _: None, on_gone=lambda _: None)
        self.cache.synced.set()
        gateway = ready_pod("g1", GATEWAY_ADDRESS) | {}
        gateway["metadata"]["namespace"] = "headroom-system"
        self.gates = Listed(gateway)
        self.router = Router(
            replicas=Listed(),
            gateways=self.gates,
            watch_pods=lambda namespace, selector: PodsOf(self.cluster, namespace, selector),
            publisher=self.published,
            activators=self.published,
            probe=self.listeners,
            clock=self.clock,
            gateway_namespace="headroom-system",
        )
        self.routing: Routing = self.router
        self._leading: asyncio.Task[None] | None = None

    def lead(self) -> None:
        """Begin to route."""
        leading = self.routing.lead(self.cluster, self.cache, lambda _: None)
        self._leading = asyncio.ensure_future(leading)

    async def end(self) -> None:
        """Route no longer."""
        if self._leading is not None:
            self._leading.cancel()
            await asyncio.gather(self._leading, return_exceptions=True)

    def see(self, service: Manifest) -> None:
        """Show the service to the operator."""
        self.cache.saw(service)
        self.router.changed()

    def child(self, kind: str, name: str) -> Manifest:
        """Return an object that exists."""
        found = self.cluster.find(kind, name, NAMESPACE)
        assert found is not None, f"{kind} {name} does not exist"
        return found


async def becomes(holds: Callable[[], object], within_s: float = 30.0) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110  (there is no event for it)
            await asyncio.sleep(0.05)


def play(world: Callable[[], W], scenario: Callable[[W], Awaitable[None]]) -> None:
    """Run a scenario in a new world on virtual time."""

    async def scenario_in_world() -> None:
        here = world()
        try:
            await scenario(here)
        finally:
            await here.end()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(scenario_in_world())
