"""Without a warm replica a service is routed to the activators, which learn of new replicas."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from controller.routing.idle_cluster import IdleCluster
from headroom.controller.routing import Router
from headroom.controller.routing.ports import OnEvent, OnList
from headroom.controller.services.service_cache import ServiceCache
from headroom.gateway import Snapshot
from headroom.gateway.activator_messages import Served
from headroom.scaling.values.observation import CostModel
from support.fakes_routing import replica_pod
from support.service_world import body

pytestmark = pytest.mark.clock

KEY = "vision/resnet50"


class Pods:
    """A watch with pods that the test changes."""

    def __init__(self) -> None:
        self.tell: Callable[[str, dict[str, Any]], None] = lambda *_: None

    async def run(self, on_list: OnList, on_event: OnEvent) -> None:
        on_list([])
        self.tell = on_event
        await asyncio.Event().wait()


class Recorder:
    """Records what gateways and activators receive, and reports as activators."""

    def __init__(self) -> None:
        self.snapshot = Snapshot()
        self.served: list[Served] = []
        self.addresses: tuple[str, ...] = ("10.0.9.1", "10.0.9.2")

    def publish(self, what: Any, kept: Any = ()) -> None:
        if isinstance(what, Snapshot):
            self.snapshot = what
        else:
            self.served = list(what)

    def withdraw(self) -> None:
        pass

    def accepting(self, port: int) -> tuple[str, ...]:
        return self.addresses

    def held(self, key: str) -> int:
        return 7

    def arrived(self, key: str) -> int:
        return 9

    def hosts(self) -> list[tuple[str, int]]:
        endpoints = self.snapshot.resources["endpoints"][KEY]
        found = [
            host["endpoint"]["address"]["socket_address"]
            for locality in json.loads(endpoints.body)["endpoints"]
            for host in locality["lb_endpoints"]
        ]
        return [(one["address"], one["port_value"]) for one in found]

    def bounds(self) -> dict[str, int]:
        layer: dict[str, int] = json.loads(self.snapshot.resources["runtime"]["in-flight"].body)[
            "layer"
        ]
        return {name: most for name, most in layer.items() if name.startswith("circuit_breakers")}


async def becomes(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110  (there is no event for it)
            await asyncio.sleep(0.01)


async def test_route_uses_activators_while_no_replica_is_warm() -> None:
    pods, recorder, quiet = Pods(), Recorder(), IdleCluster()
    learned: dict[str, CostModel] = {}
    cache = ServiceCache(on_change=lambda _: None, on_gone=lambda _: None)
    status = {
        "coldStart": {"p90": "12.5s"},
        "model": {"fixedCost": "150ms", "perItemCost": "60ms", "maxBatch": 4},
    }
    routing = {"mode": "Gateway", "tenants": {"inFlightPercent": 25}}
    cache.saw(body(spec__routing=routing) | {"status": status})
    cache.synced.set()
    router = Router(
        replicas=pods,
        gateways=Pods(),
        watch_pods=lambda *_: Pods(),
        publisher=recorder,
        activators=recorder,
        probe=quiet,
        clock=quiet,
        gateway_namespace="headroom-system",
    )
    leading = asyncio.create_task(router.lead(quiet, cache, learned.get))  # type: ignore[arg-type]
    try:
        await becomes(lambda: recorder.served)
        (served,) = recorder.served
        assert (served.key, served.cold_start_s, served.replicas) == (KEY, 12.5, ())
        assert served.in_flight == 8  # two batches: the target of 250 ms is below one
        assert recorder.hosts() == [("10.0.9.1", served.port), ("10.0.9.2", served.port)]
        assert recorder.bounds() == {}

        pods.tell("ADDED", replica_pod())
        await becomes(lambda: recorder.hosts() == [("10.0.0.1", 8000)])
        assert [one.address for one in recorder.served[0].replicas] == ["10.0.0.1"]
        # What is held is in flight too, and takes no other's place; shares are of the replicas.
        assert set(recorder.bounds().values()) == {8 + 7, 2}

        exact = CostModel(fixed_s=0.15, per_item_s=0.06, max_batch=4, slots=4)
        learned[body()["metadata"]["uid"]] = exact  # goes before what status shows
        router.changed()
        await becomes(lambda: set(recorder.bounds().values()) == {4 * 8 + 7, 4 * 2})

        pods.tell("MODIFIED", replica_pod(deletionTimestamp="2026-01-01T00:00:00Z"))
        await becomes(
            lambda: recorder.hosts() == [("10.0.9.1", served.port), ("10.0.9.2", served.port)]
        )
        recorder.addresses = ()
        router.changed()
        await becomes(lambda: recorder.hosts() == [])
    finally:
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)
