"""A gateway that disconnects is probed at once, and its services move to the other one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest

from headroom.controller.routing import Router
from headroom.controller.routing.ports import OnEvent, OnList
from headroom.controller.routing.routing_changes import LOOK_EVERY_S
from headroom.controller.services.service_cache import ServiceCache
from headroom.errors import NotFound
from headroom.gateway import Snapshot
from headroom.gateway.runtime import GATEWAYS, LAYER
from support.fakes_routing import NoActivators
from support.service_world import body
from support.virtual_time import VirtualTimeLoop


class Gateways:
    """Two gateways, as reported by a watch."""

    def __init__(self, *pods: dict[str, Any]) -> None:
        self.pods = pods
        self.tell: OnEvent = lambda _event, _pod: None

    async def run(self, on_list: OnList, on_event: OnEvent) -> None:
        self.tell = on_event
        on_list(list(self.pods))
        await asyncio.Event().wait()


class World(NoActivators):
    """The API server, the network, and configuration receivers: what is written, and when."""

    def __init__(self) -> None:
        self.shut: set[str] = set()
        self.led: list[tuple[float, str]] = []
        self.published: list[Snapshot] = []

    async def is_open(self, address: str, port: int) -> bool:
        return address not in self.shut

    async def list_all(self, *_: Any) -> list[Any]:
        return []

    async def get(self, _version: str, kind: str, _namespace: str, name: str) -> dict[str, Any]:
        raise NotFound(f"{kind}/{name}")

    async def create(self, manifest: dict[str, Any], **_: Any) -> dict[str, Any]:
        if manifest["kind"] == "EndpointSlice":
            (endpoint,) = manifest["endpoints"]
            self.led.append((asyncio.get_running_loop().time(), endpoint["addresses"][0]))
        return manifest | {"metadata": manifest["metadata"] | {"resourceVersion": "1"}}

    async def json_patch(self, live: dict[str, Any], *_: Any, **__: Any) -> dict[str, Any]:
        return live

    def publish(self, what: Snapshot | Iterable[Any], kept: Any = ()) -> None:
        if isinstance(what, Snapshot):
            self.published.append(what)

    def now_s(self) -> float:
        return asyncio.get_running_loop().time()


def gateway(number: int) -> dict[str, Any]:
    return {
        "metadata": {"uid": f"g{number}", "name": f"g{number}", "namespace": "headroom-system"},
        "status": {
            "podIP": f"10.0.0.{number}",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def published_gateways(world: World) -> str:
    layer: dict[str, str] = json.loads(world.published[-1].resources["runtime"][LAYER].body)[
        "layer"
    ]
    return layer[GATEWAYS]


async def scenario(how: str) -> float:
    """Stop a service's gateway between two probes; return how long it is still used."""
    world = World()
    cache = ServiceCache(on_change=lambda _: None, on_gone=lambda _: None)
    cache.saw(body(spec__routing__mode="Gateway"))
    cache.synced.set()
    gateways = Gateways(gateway(1), gateway(2))
    router = Router(
        replicas=Gateways(),
        gateways=gateways,
        watch_pods=lambda *_: Gateways(),
        publisher=world,
        activators=world,
        probe=world,
        clock=world,
        gateway_namespace="headroom-system",
    )
    leading = asyncio.create_task(router.lead(world, cache, lambda _: None))  # type: ignore[arg-type]
    # Ten looks and a hundredth of the next one.
    await asyncio.sleep(10 * LOOK_EVERY_S + 0.01 * LOOK_EVERY_S)
    (first,) = world.led
    assert published_gateways(world) == "10.0.0.1 10.0.0.2"
    gone_s = world.now_s()
    if how == "asked to leave":
        pod = gateway(int(first[1][-1]))
        gateways.tell("MODIFIED", pod | {"metadata": pod["metadata"] | {"deletionTimestamp": "t"}})
    else:
        world.shut.add(first[1])
    if how == "killed":
        router.gateway_left()
    await asyncio.sleep(2 * LOOK_EVERY_S)
    leading.cancel()
    await asyncio.gather(leading, return_exceptions=True)
    (_, (moved_s, to)) = world.led
    assert to != first[1]
    assert published_gateways(world) == (to if how == "asked to leave" else "10.0.0.1 10.0.0.2")
    return moved_s - gone_s


@pytest.mark.parametrize(
    ("how", "after_s"), [("killed", 0.0), ("asked to leave", 0.0), ("hangs", LOOK_EVERY_S)]
)
def test_deleted_gateway_is_replaced_at_once_and_hanging_one_at_the_next_probe(
    how: str, after_s: float
) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        left_after_s = runner.run(scenario(how))
    assert 0.9 * after_s <= left_after_s <= after_s
