"""An existing workload behind the gateway: its pods, and a Service in addition to its owner's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headroom.controller.gather.workloads.workload import Workload
from headroom.controller.routing.target_pods import PATIENCE_S
from headroom.controller.routing.target_selector import service_selector
from headroom.errors import Unavailable
from headroom.resources.names import ROUTED_LABEL
from support.cluster_world import Manifest
from support.fakes_routing import GATEWAY_ADDRESS, NAMESPACE, RoutedWorld, becomes, play, ready_pod
from support.service_world import body

KEY = "vision/llm"
LABELS = {"app": "llm"}
ROUTED = {ROUTED_LABEL: "gateway"}


class World(RoutedWorld):
    """With a Deployment, its ReplicaSet, its pods and its owner's Service."""

    def __init__(self) -> None:
        super().__init__()
        self.deploy("llm", LABELS)
        theirs = {"apiVersion": "v1", "kind": "Service", "spec": {"selector": dict(LABELS)}}
        self.cluster.put(theirs | {"metadata": {"name": "llm", "namespace": NAMESPACE}})
        self.theirs = self.child("Service", "llm")["metadata"]["resourceVersion"]
        self.generation = 0

    def deploy(self, name: str, labels: dict[str, str]) -> None:
        """Store a Deployment and its ReplicaSet."""
        template = {"metadata": {"labels": labels}}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        owner = self._put("apps/v1", "Deployment", name, spec=spec)
        self._put("apps/v1", "ReplicaSet", f"{name}-abc", ownerReferences=[_reference(owner)])

    def pod(self, name: str, address: str, replica_set: str = "llm-abc") -> None:
        """Store a ready pod of a ReplicaSet, with the target's labels."""
        owner = _reference(self.child("ReplicaSet", replica_set))
        self.cluster.put(ready_pod(name, address, labels=LABELS, ownerReferences=[owner]))

    def mode(self, mode: str, target: dict[str, str] | None = None, **routing: Any) -> None:
        """Apply the InferenceService with this mode."""
        self.generation += 1
        one = body(
            metadata__name="llm",
            metadata__generation=self.generation,
            metadata__resourceVersion=str(100 + self.generation),
            spec__runtime={"profile": "vllm", "maxBatchSize": 8, "port": 8080},
            spec__targetRef=target or {"name": "llm"},
            spec__routing={"mode": mode, **routing},
        )
        self.see(one)

    def _put(self, version: str, kind: str, name: str, spec: object = None, **metadata: Any) -> Any:
        named = {"name": name, "namespace": NAMESPACE, **metadata}
        stored = {"apiVersion": version, "kind": kind, "metadata": named, "spec": spec or {}}
        return self.cluster.put(stored)


def _reference(one: Manifest) -> dict[str, Any]:
    named = {"apiVersion": one["apiVersion"], "kind": one["kind"], "controller": True}
    return named | {key: one["metadata"][key] for key in ("name", "uid")}


def test_target_behind_gateway_gets_an_additional_service() -> None:
    async def scenario(world: World) -> None:
        world.pod("a", "10.0.0.1")
        world.mode("Gateway")
        world.lead()
        await becomes(lambda: world.cluster.find("Service", "llm-gateway", NAMESPACE))
        ours = world.child("Service", "llm-gateway")
        assert ours["spec"]["selector"] == LABELS  # no gateway listens yet
        (port,) = ours["spec"]["ports"]
        assert (port["port"], port["targetPort"]) == (80, 8080)
        assert ours["metadata"]["ownerReferences"][0]["name"] == "llm"

        world.listeners.open.add(GATEWAY_ADDRESS)
        await becomes(lambda: ROUTED_LABEL in ours["spec"]["selector"])
        slice_ = world.child("EndpointSlice", "llm-gateway-gateway")
        assert slice_["metadata"]["labels"]["kubernetes.io/service-name"] == "llm-gateway"
        assert slice_["endpoints"][0]["addresses"] == [GATEWAY_ADDRESS]

        world.mode("Service")
        await becomes(lambda: ours["spec"]["selector"] == LABELS)
        await asyncio.sleep(5)
        assert slice_["endpoints"]  # until Kubernetes' own slice has a ready replica
        _kubernetes_knows(world, "llm-gateway", "10.0.0.1")
        await becomes(lambda: not slice_["endpoints"])
        assert world.child("Service", "llm")["metadata"]["resourceVersion"] == world.theirs

    play(World, scenario)


def _kubernetes_knows(world: World, service: str, address: str) -> None:
    labels = {
        "kubernetes.io/service-name": service,
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    metadata = {"name": f"{service}-x", "namespace": NAMESPACE, "labels": labels}
    endpoints = [{"addresses": [address], "conditions": {"ready": True}}]
    world.cluster.put({"kind": "EndpointSlice", "metadata": metadata, "endpoints": endpoints})


def test_gateway_knows_only_ready_pods_that_the_target_controls() -> None:
    async def scenario(world: World) -> None:
        world.deploy("other", {"app": "other"})
        world.pod("a", "10.0.0.1")
        world.pod("stranger", "10.0.0.9", "other-abc")
        world.cluster.put(ready_pod("orphan", "10.0.0.8", labels=LABELS))
        world.mode("Gateway")
        world.lead()
        await becomes(lambda: world.published.hosts(KEY) == ["10.0.0.1:8080"])

        world.pod("b", "10.0.0.2")
        await becomes(lambda: world.published.hosts(KEY) == ["10.0.0.1:8080", "10.0.0.2:8080"], 1.0)
        leaving = world.child("Pod", "a")
        gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
        world.cluster.update(leaving, lambda pod: pod["metadata"].update(gone))
        await becomes(lambda: world.published.hosts(KEY) == ["10.0.0.2:8080"], 1.0)
        unready = [{"type": "Ready", "status": "False"}]
        two = world.child("Pod", "b")
        world.cluster.update(two, lambda pod: pod["status"].update(conditions=unready))
        await becomes(lambda: world.published.hosts(KEY) == [], 1.0)

    play(World, scenario)


def test_recreated_target_with_another_selector_is_followed() -> None:
    async def scenario(world: World) -> None:
        world.pod("a", "10.0.0.1")
        world.mode("Gateway")
        world.lead()
        await becomes(lambda: world.published.hosts(KEY) == ["10.0.0.1:8080"])
        world.cluster.delete("Deployment", "llm", NAMESPACE)
        await becomes(lambda: world.published.hosts(KEY) == [], 1.0)
        await asyncio.sleep(20)
        world.deploy("llm", LABELS | {"tier": "gold"})
        owner = _reference(world.child("ReplicaSet", "llm-abc"))
        labels = LABELS | {"tier": "gold"}
        world.cluster.put(ready_pod("c", "10.0.0.3", labels=labels, ownerReferences=[owner]))
        await becomes(lambda: world.published.hosts(KEY) == ["10.0.0.3:8080"])
        await becomes(lambda: world.child("Service", "llm-gateway")["spec"]["selector"] == labels)

    play(World, scenario)


def test_kind_with_a_scale_is_followed_through_its_chain_of_controllers() -> None:
    async def scenario(world: World) -> None:
        group = world._put("example.com/v1", "Group", "own", spec={"replicas": 1})
        group["scale"] = {"selector": "app=own"}
        below = world._put("apps/v1", "StatefulSet", "own-0", ownerReferences=[_reference(group)])
        labels = {"app": "own"}
        owned = [_reference(below)]
        world.cluster.put(ready_pod("a", "10.0.0.1", labels=labels, ownerReferences=owned))
        world.cluster.put(ready_pod("b", "10.0.0.2", labels=labels))
        target = {"apiVersion": "example.com/v1", "kind": "Group", "name": "own"}
        world.mode("Gateway", target=target)
        world.lead()
        await becomes(lambda: world.published.hosts(KEY) == ["10.0.0.1:8080"])
        await becomes(lambda: _selector(world, "llm-gateway") == labels)

    play(World, scenario)


def test_restarted_operator_publishes_no_route_before_the_targets_pods_are_known() -> None:
    async def scenario(world: World) -> None:
        world.pod("a", "10.0.0.1")
        world.cluster.fail("get", "Deployment", Unavailable("no answer"), times=5)
        world.mode("Gateway")
        world.lead()
        await asyncio.sleep(4)
        assert world.published.snapshot is None
        await becomes(lambda: world.published.snapshot)
        assert world.published.hosts(KEY) == ["10.0.0.1:8080"]

    play(World, scenario)


def test_unreadable_target_delays_other_routes_no_longer_than_the_patience() -> None:
    async def scenario(world: World) -> None:
        world.cluster.fail("get", "Deployment", Unavailable("no answer"), times=1000)
        world.mode("Gateway")
        world.lead()
        await asyncio.sleep(PATIENCE_S + 6.0)
        assert world.published.snapshot is not None
        assert world.published.hosts(KEY) is None
        assert world.published.snapshot.keeps(KEY), "what a gateway has of it is not removed"

    play(World, scenario)


def test_name_of_an_existing_service_is_refused_and_that_service_is_not_changed() -> None:
    async def scenario(world: World) -> None:
        world.pod("a", "10.0.0.1")
        world.listeners.open.add(GATEWAY_ADDRESS)
        world.mode("Gateway", serviceName="llm", servicePort=8000)
        world.lead()
        service = next(iter(world.cache.uids()))
        await becomes(lambda: "routing.serviceName" in _trouble(world, service))
        assert "Service vision/llm exists" in _trouble(world, service)
        assert world.child("Service", "llm")["metadata"]["resourceVersion"] == world.theirs

    play(World, scenario)


def _trouble(world: World, uid: str) -> str:
    routed = world.router._table.routed.get(uid)
    return "" if routed is None else routed.last_error


def test_service_of_an_earlier_name_leads_to_the_replicas() -> None:
    async def scenario(world: World) -> None:
        world.pod("a", "10.0.0.1")
        world.listeners.open.add(GATEWAY_ADDRESS)
        world.mode("Gateway")
        world.lead()
        await becomes(lambda: _selector(world, "llm-gateway") == ROUTED)
        world.mode("Gateway", serviceName="llm-fast")
        await becomes(lambda: _selector(world, "llm-fast") == ROUTED)
        assert _selector(world, "llm-gateway") == LABELS
        assert world.child("EndpointSlice", "llm-fast-gateway")["endpoints"]
        assert not world.child("EndpointSlice", "llm-gateway-gateway")["endpoints"]

    play(World, scenario)


def _selector(world: World, name: str) -> object:
    found = world.cluster.find("Service", name, NAMESPACE)
    return found and found["spec"]["selector"]


def test_deleted_inference_service_releases_the_route() -> None:
    async def scenario(world: World) -> None:
        world.pod("a", "10.0.0.1")
        world.mode("Gateway", serviceName="llm-fast")
        world.lead()
        await becomes(lambda: world.cluster.find("Service", "llm-fast", NAMESPACE))
        uid = next(iter(world.cache.uids()))
        assert world.child("Service", "llm-fast")["metadata"]["ownerReferences"][0]["uid"] == uid
        world.cache.forget(uid)
        world.router.changed()
        await becomes(lambda: world.published.hosts(KEY) is None)
        writes = len(world.cluster.writes())
        await asyncio.sleep(30)
        assert len(world.cluster.writes()) == writes

    play(World, scenario)


@pytest.mark.parametrize(
    ("selector", "labels", "text", "expected"),
    [
        ({"matchLabels": {"app": "llm"}}, {"app": "llm", "tier": "gold"}, "", {"app": "llm"}),
        (
            {
                "matchLabels": {"app": "llm"},
                "matchExpressions": [
                    {"key": "tier", "operator": "In", "values": ["gold", "free"]},
                    {"key": "canary", "operator": "DoesNotExist"},
                ],
            },
            {"app": "llm", "tier": "gold"},
            "",
            {"app": "llm", "tier": "gold"},
        ),
        ({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}, {"app": "a"}, "", None),
        (None, None, "app=llm,tier==gold", {"app": "llm", "tier": "gold"}),
        (None, None, "tier in (gold,free)", None),
        (None, None, "app=llm,!canary", None),
        (None, None, "app!=llm", None),
    ],
)
def test_service_selector_follows_labels_and_refuses_what_a_service_cannot_say(
    selector: object, labels: object, text: str, expected: dict[str, str] | None
) -> None:
    spec = {"selector": selector, "template": {"metadata": {"labels": labels}}}
    manifest = {"metadata": {"uid": "u"}, "spec": spec if selector else {}}
    found = service_selector(Workload(manifest=manifest, replicas=1, selector=text))
    assert found == expected
