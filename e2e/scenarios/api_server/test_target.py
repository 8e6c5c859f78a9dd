"""Existing workloads scaled by the operator on a real API server with a fake kubelet."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from cluster import ClusterError, ControlPlane
from reliability.testbed.admin import APPLY, Object
from reliability.testbed.exporter import REPLICA_RPS
from reliability.testbed.testbed import shared_cluster
from reliability.testbed.world import SERVICES, World, world
from scenarios.api_server.pod_groups import GROUP, KIND, POD_GROUPS, PodGroups

pytestmark = [pytest.mark.clock, pytest.mark.asyncio(loop_scope="module")]

DECIDED_WITHIN_S = 60.0
HOLD_S = 4.0
"""Eight ticks: whatever was going to be written has been."""
PATHS = {
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    KIND: POD_GROUPS,
}
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    """A namespace with existing workloads, and an operator."""
    scratch = tmp_path_factory.mktemp("target")
    async with shared_cluster(control_plane, scratch) as on, world(on, "target") as one:
        await _create(one, "shared", replicas=2)
        await on.admin.create(AUTOSCALERS.format(one.namespace), _autoscaler("shared"))
        await one.operator.start()
        yield one


async def test_a_deployment_is_adopted_scaled_through_scale_alone_and_left(one: World) -> None:
    await _create(one, "llm", replicas=2)
    await _serve(one, "llm", 2)
    before = await _workload(one, "llm")
    applied_s = time.monotonic()
    await _scale(one, "llm", scaling={"scaleDown": {"stabilizationWindow": "1m"}})
    await one.wait("decided", lambda: _decided(one, "llm"), DECIDED_WITHIN_S)
    print(f"decision in status {time.monotonic() - applied_s:.1f} s after apply")
    assert await _replicas(one, "llm") == 2
    one.load(2.5 * REPLICA_RPS, "llm")
    await one.wait("more replicas serve", lambda: _serves_at_least(one, "llm", 3))

    after = await _workload(one, "llm")
    assert _but_replicas(after) == _but_replicas(before)
    assert _owners_of_replicas(after) == {("headroom-scaler", "scale")}
    written = {each.call.words for each in one.proxy.exchanges if each.taken and each.call.writes}
    assert written == {
        "patch deployments/scale",
        "patch inferenceservices/status",
        "create events",
    }

    chosen = await _replicas(one, "llm") + 1
    await _kubectl(one, "scale", "deployment/llm", f"--replicas={chosen}")
    await one.wait("the other writer is named", lambda: _says(one, "llm", "ReplicasOverwritten"))
    assert "kubectl changed the replicas" in await _message(one, "llm")
    await one.delete_service("llm")
    await asyncio.sleep(HOLD_S / 2)
    left = await _workload(one, "llm")
    assert "deletionTimestamp" not in left["metadata"]
    assert (left["spec"]["replicas"], _but_replicas(left)) == (chosen, _but_replicas(before))


async def test_external_is_scaled_by_kubectl_and_a_switch_changes_nothing(one: World) -> None:
    await _create(one, "wished", replicas=3)
    scaling = {"minReplicas": 2, "maxReplicas": 6, "scaleDown": {"stabilizationWindow": "10m"}}
    await _scale(one, "wished", scaling=scaling)
    await one.wait("decided", lambda: _decided(one, "wished"))
    external = scaling | {"mode": "External"}
    await _scale(one, "wished", scaling=external, replicas=3)
    await one.wait("followed", lambda: _is_active(one, "wished", "ExternallyScaled"))
    await asyncio.sleep(HOLD_S / 2)
    assert await _replicas(one, "wished") == 3

    await _kubectl(one, "scale", "hisvc/wished", "--replicas=5")
    await one.wait("five serve", lambda: _serves_at_least(one, "wished", 5))
    scale = await one.admin.get(f"{SERVICES.format(one.namespace)}/wished/scale")
    assert scale["spec"]["replicas"] == scale["status"]["replicas"] == 5
    assert scale["status"]["selector"] == "app=wished"
    for outside in (1, 7):
        with pytest.raises(ClusterError, match=r"spec\.replicas"):
            await _kubectl(one, "scale", "hisvc/wished", f"--replicas={outside}")

    back = json.dumps({"spec": {"replicas": None, "scaling": {"mode": "Auto"}}})
    await _kubectl(one, "patch", "hisvc/wished", "--type=merge", "-p", back)
    await one.wait("decides", lambda: _is_active(one, "wished", "Auto"))
    await asyncio.sleep(HOLD_S / 2)
    assert await _replicas(one, "wished") == 5


async def test_conflicting_owners_of_a_target_are_reported_and_not_overwritten(
    one: World,
) -> None:
    await _scale(one, "shared", scaling={"minReplicas": 4})
    await one.wait("the HPA is named", lambda: _says(one, "shared", "AutoscalerConflict"), 60.0)
    assert "HorizontalPodAutoscaler shared" in await _message(one, "shared")
    assert await one.condition("ScalingActive", "shared") == ("False", "AutoscalerConflict")
    await asyncio.sleep(1.1)  # the API server reports ages in whole seconds
    await _scale(one, "younger", target="shared", scaling={"minReplicas": 5})
    await one.wait(
        "the older service is named", lambda: _says(one, "younger", "TargetAlreadyManaged"), 60.0
    )
    assert "InferenceService shared" in await _message(one, "younger")
    await asyncio.sleep(HOLD_S)
    workload = await _workload(one, "shared")
    assert workload["spec"]["replicas"] == 2
    assert not [owner for owner in _owners_of_replicas(workload) if owner[0].startswith("head")]


async def test_a_stateful_set_is_scaled(one: World) -> None:
    await _create(one, "ordered", "StatefulSet", replicas=1)
    await _scale(one, "ordered", "StatefulSet", scaling={"minReplicas": 3})
    await one.wait("three serve", lambda: _serves_at_least(one, "ordered", 3))
    stands = await _workload(one, "ordered", "StatefulSet")
    assert stands["spec"]["replicas"] == 3
    assert ("headroom-scaler", "scale") in _owners_of_replicas(stands)


async def test_custom_kind_with_scale_is_scaled_once_permitted(one: World) -> None:
    async with PodGroups(one) as kind:
        await _create(one, "leaders", KIND, replicas=1)
        await _scale(one, "leaders", KIND, api_version=f"{GROUP}/v1", scaling={"minReplicas": 3})
        await one.wait(
            "the missing role is named", lambda: _says(one, "leaders", "TargetForbidden")
        )
        assert "get and update on its /scale" in await _message(one, "leaders")
        await kind.permit()
        await one.wait("three serve", lambda: _serves_at_least(one, "leaders", 3))
        stands = await _workload(one, "leaders", KIND)
        assert stands["spec"]["replicas"] == 3
        assert ("headroom-scaler", "scale") in _owners_of_replicas(stands)
        await one.delete_service("leaders")


async def _create(one: World, name: str, kind: str = "Deployment", *, replicas: int) -> None:
    """Create it as its owner would, with a field that the operator must leave alone."""
    labels = {"app": name}
    container = {"name": "server", "image": "localhost/none:1", "resources": {}}
    spec: Object = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    if kind == "StatefulSet":
        spec["serviceName"] = name
    await one.admin.create(
        PATHS[kind].format(one.namespace),
        {
            "apiVersion": f"{GROUP}/v1" if kind == KIND else "apps/v1",
            "kind": kind,
            "metadata": {"name": name, "annotations": {"team": "vision"}},
            "spec": spec,
        },
    )


async def _scale(
    one: World,
    name: str,
    kind: str = "Deployment",
    *,
    target: str = "",
    api_version: str = "apps/v1",
    **spec: Any,
) -> None:
    """Apply an InferenceService that scales what has its name, unless another is given."""
    reference = {"apiVersion": api_version, "kind": kind, "name": target or name}
    manifest = one.manifest(name, targetRef=reference, **spec)
    del manifest["spec"]["runtime"]["image"]
    await one.admin.patch(f"{SERVICES.format(one.namespace)}/{name}", manifest, APPLY)


def _autoscaler(name: str) -> Object:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 5},
    }


async def _kubectl(one: World, *words: str) -> str:
    """Run it as a person would, while pods go on being served."""
    scope = ("--namespace", one.namespace)
    return await asyncio.to_thread(one.shared.cluster.kubectl, *words, *scope)


async def _workload(one: World, name: str, kind: str = "Deployment") -> Object:
    return await one.admin.get(f"{PATHS[kind].format(one.namespace)}/{name}")


async def _replicas(one: World, name: str) -> int:
    return int((await _workload(one, name))["spec"]["replicas"])


async def _serve(one: World, name: str, replicas: int) -> None:
    async def ready() -> bool:
        status = (await _workload(one, name)).get("status", {})
        return bool(status.get("readyReplicas") == replicas)

    await one.wait(f"{replicas} of {name} are ready", ready)


async def _decided(one: World, name: str) -> bool:
    return bool((await one.service(name)).get("status", {}).get("decision"))


async def _serves_at_least(one: World, name: str, replicas: int) -> bool:
    """Return whether the operator itself sees that many ready replicas, and all desired ones."""
    status = (await one.service(name)).get("status", {})
    return bool(replicas <= status.get("readyReplicas", 0) == status.get("replicas"))


async def _says(one: World, name: str, reason: str) -> bool:
    return (await one.condition("AbleToScale", name))[1] == reason


async def _is_active(one: World, name: str, reason: str) -> bool:
    return (await one.condition("ScalingActive", name))[1] == reason


async def _message(one: World, name: str) -> str:
    found = (await one.service(name))["status"]["conditions"]
    return next(str(each["message"]) for each in found if each["type"] == "AbleToScale")


def _but_replicas(workload: Object) -> Object:
    """Return the fields that belong to the owner alone."""
    metadata = workload["metadata"]
    kept = {key: metadata.get(key) for key in ("uid", "labels", "ownerReferences", "finalizers")}
    annotations = {"team": metadata["annotations"]["team"]}
    spec = {key: value for key, value in workload["spec"].items() if key != "replicas"}
    return {**kept, "annotations": annotations, "spec": spec}


def _owners_of_replicas(workload: Object) -> set[tuple[str, str]]:
    """Return field manager and subresource of the last writer of the number."""
    return {
        (each["manager"], each.get("subresource", ""))
        for each in workload["metadata"]["managedFields"]
        if "f:replicas" in each["fieldsV1"].get("f:spec", {})
    }
