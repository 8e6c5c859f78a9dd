"""An exception inside routing ends neither the operator nor routing."""

from __future__ import annotations

import asyncio

import pytest

from controller.routing.idle_cluster import IdleCluster
from headroom.controller.routing import Router
from headroom.controller.routing.ports import OnEvent, OnList
from headroom.controller.services.service_cache import ServiceCache
from headroom.gateway import Snapshot
from support.fakes_routing import NoActivators

pytestmark = pytest.mark.clock


class FailsOnce:
    """A watch that fails at its first pod and has no pods afterwards."""

    def __init__(self, fails: int) -> None:
        self.fails = fails

    async def run(self, on_list: OnList, on_event: OnEvent) -> None:
        if self.fails:
            self.fails -= 1
            raise KeyError("metadata")
        on_list([])
        await asyncio.Event().wait()


class Recorder:
    """Records what the gateways receive."""

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []
        self.first = asyncio.Event()
        self.withdrawn = False

    def publish(self, snapshot: Snapshot) -> None:
        self.snapshots.append(snapshot)
        self.first.set()

    def withdraw(self) -> None:
        self.withdrawn = True


async def test_routing_loop_restarts_after_an_exception() -> None:
    recorder, nothing = Recorder(), IdleCluster()
    cache = ServiceCache(on_change=lambda _: None, on_gone=lambda _: None)
    cache.synced.set()
    router = Router(
        replicas=FailsOnce(2),
        gateways=FailsOnce(0),
        watch_pods=lambda *_: FailsOnce(0),
        publisher=recorder,
        activators=NoActivators(),
        probe=nothing,
        clock=nothing,
        gateway_namespace="headroom-system",
        restart_after_s=0.01,
    )
    leading = asyncio.create_task(router.lead(nothing, cache, lambda _: None))  # type: ignore[arg-type]
    async with asyncio.timeout(5):
        await recorder.first.wait()
    assert not recorder.withdrawn
    leading.cancel()
    await asyncio.gather(leading, return_exceptions=True)
    assert recorder.withdrawn
