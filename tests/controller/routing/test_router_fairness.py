"""One tenant's routes make neither other tenants nor the API server wait."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Iterable

from headroom.controller.routing.ports import OnEvent, OnList
from headroom.gateway import Snapshot
from headroom.gateway.activator_messages import Served
from headroom.resources.names import ROUTED_LABEL
from support.cluster_world import FakeCluster, Manifest
from support.fakes_routing import (
    GATEWAY_ADDRESS,
    NAMESPACE,
    PublishedRoutes,
    RoutedWorld,
    becomes,
    play,
    ready_pod,
    replica_pod,
)
from support.service_world import body


def slow_api(cluster: FakeCluster, seconds: dict[str, float]) -> Counter[str]:
    """Let reads of these kinds take so long; count all of them by kind."""
    counts: Counter[str] = Counter()
    get = cluster.get

    async def delayed(api_version: str, kind: str, namespace: str, name: str) -> Manifest:
        counts[kind] += 1
        await asyncio.sleep(seconds.get(namespace, 0.01))
        return await get(api_version, kind, namespace, name)

    cluster.get = delayed  # type: ignore[method-assign]
    return counts


def routed(namespace: str, name: str, generation: int = 1, **routing: object) -> Manifest:
    """Return an InferenceService in Gateway mode."""
    return body(
        metadata__name=name,
        metadata__namespace=namespace,
        metadata__uid=f"{namespace}-{name}",
        metadata__generation=generation,
        metadata__resourceVersion=str(100 + generation),
        spec__routing={"mode": "Gateway", **routing},
    )


def leads_to_gateway(world: RoutedWorld, namespace: str, name: str) -> bool:
    found = world.cluster.find("Service", name, namespace)
    return found is not None and ROUTED_LABEL in found["spec"]["selector"]


def test_refused_routing_is_tried_again_at_growing_intervals() -> None:
    async def scenario(world: RoutedWorld) -> None:
        world.listeners.open.add(GATEWAY_ADDRESS)
        for number in range(40):
            world.cluster.put(
                {"kind": "Service", "metadata": {"name": f"e{number}", "namespace": "evil"}}
            )
            world.see(routed("evil", f"e{number}"))
        counts = slow_api(world.cluster, {})
        world.lead()
        await asyncio.sleep(120.0)
        counts.clear()
        await asyncio.sleep(60.0)
        assert counts["Service"] < 40 * 10  # every half second it would be 4800

        world.cluster.delete("Service", "e0", "evil")
        world.see(routed("evil", "e0", 2, requestTimeout="7s"))  # another spec is tried at once
        await becomes(lambda: leads_to_gateway(world, "evil", "e0"), 2.0)
        world.cluster.delete("Service", "e1", "evil")
        await becomes(lambda: leads_to_gateway(world, "evil", "e1"), 61.0)

    play(RoutedWorld, scenario)


def test_no_service_waits_for_writes_of_another_namespace() -> None:
    async def scenario(world: RoutedWorld) -> None:
        world.listeners.open.add(GATEWAY_ADDRESS)
        for number in range(200):
            world.see(routed("evil", f"e{number}"))
        slow_api(world.cluster, {"evil": 3.0})
        world.lead()
        await asyncio.sleep(10.0)
        world.see(routed("good", "mine"))
        await becomes(lambda: leads_to_gateway(world, "good", "mine"), 2.0)

    play(RoutedWorld, scenario)


class Flapping:
    """A watch of one pod that becomes ready and unready 20 times a second."""

    async def run(self, on_list: OnList, on_event: OnEvent) -> None:
        on_list([])
        ready = True
        while True:
            status = {"podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": str(ready)}]}
            on_event("MODIFIED", replica_pod() | {"status": status})
            ready = not ready
            await asyncio.sleep(0.05)


class Costly(PublishedRoutes):
    """Gateways for which it takes 20 ms of the event loop to publish."""

    def __init__(self) -> None:
        super().__init__()
        self.published = 0

    def publish(self, what: Snapshot | Iterable[Served], kept: Collection[str] = ()) -> None:
        if isinstance(what, Snapshot):
            self.published += 1
            begun_s = time.thread_time()
            while time.thread_time() - begun_s < 0.02:
                pass


def test_publishing_takes_a_quarter_of_the_event_loop_however_often_a_pod_changes() -> None:
    async def scenario(world: RoutedWorld) -> None:
        world.router.replicas = Flapping()
        world.router.publisher = costly = Costly()
        world.see(routed(NAMESPACE, "resnet50"))
        world.lead()
        await asyncio.sleep(4.0)
        assert 10 < costly.published <= 4.0 / (0.02 + 3.0 * 0.02)

    play(RoutedWorld, scenario)


def test_target_whose_pods_change_all_the_time_is_read_about_once_a_second() -> None:
    async def scenario(world: RoutedWorld) -> None:
        labels = {"app": "llm"}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}}
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}
        world.cluster.put(target | {"metadata": {"name": "llm", "namespace": NAMESPACE}})
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True}
        for number in range(300):
            named = [owner | {"name": f"none{number}", "uid": f"none{number}"}]
            stray = ready_pod(f"s{number}", "10.0.1.1", labels=labels, ownerReferences=named)
            world.cluster.put(stray)
        runtime = {"profile": "vllm", "maxBatchSize": 8, "port": 8080}
        aimed = {"targetRef": {"name": "llm"}, "runtime": runtime}
        one = routed(NAMESPACE, "llm")
        world.see(one | {"spec": one["spec"] | aimed})
        counts = slow_api(world.cluster, {})
        world.lead()
        await asyncio.sleep(1.0)
        counts.clear()
        for number in range(400):
            ready = [{"type": "Ready", "status": str(number % 2 == 0)}]
            pod = world.child("Pod", "s0")
            pod["status"]["conditions"] = ready
            world.cluster.on_change("MODIFIED", pod)
            await asyncio.sleep(0.05)
        assert counts["Deployment"] <= 30
        assert counts["ReplicaSet"] <= 20 * 64

    play(RoutedWorld, scenario)
