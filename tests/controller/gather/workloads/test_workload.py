"""Workloads as they are read: rollouts, selectors of pods, the depth of owner chains."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headroom.controller.gather.pods.pod_ownership import PodOwnership
from headroom.controller.gather.workloads.workload import is_paused, is_rolling, selector_text
from support.cluster_world import FakeClock, FakeCluster

Manifest = dict[str, Any]


def workload(status: Manifest, spec: Manifest | None = None, version: str = "apps/v1") -> Manifest:
    return {
        "apiVersion": version,
        "metadata": {"generation": 3},
        "spec": spec or {},
        "status": status,
    }


DONE = {"observedGeneration": 3, "replicas": 4, "updatedReplicas": 4}
REVISED = {"observedGeneration": 3, "updateRevision": "b", "currentRevision": "a"}


@pytest.mark.parametrize(
    ("manifest", "rolls"),
    [
        (workload(DONE), False),
        (workload(DONE | {"observedGeneration": 2}), True),
        (workload(DONE | {"observedGeneration": 4}), False),
        (workload(DONE | {"updatedReplicas": 3}), True),
        (workload(DONE | {"replicas": 3}), False),
        (workload({"observedGeneration": 3}), False),  # of none, none is old
        (workload({"observedGeneration": 3, "replicas": 1}), True),
        (workload({}), True),  # no controller has observed it
        (workload({}, version="example.com/v1"), False),  # it does not say
        (workload({"replicas": 2}, version="example.com/v1"), False),
        (workload({"replicas": 2, "updatedReplicas": 1}, version="example.com/v1"), True),
        (workload({"observedGeneration": "x"}, version="example.com/v1"), False),
        (workload(REVISED), True),
        (workload(REVISED | {"currentRevision": "b"}), False),
        (workload(REVISED, {"updateStrategy": {"type": "OnDelete"}}), False),
        (workload(REVISED, {"updateStrategy": {"type": "RollingUpdate"}}), True),
        (workload(REVISED, {"updateStrategy": {"rollingUpdate": {"partition": 2}}}), False),
        (workload(REVISED, {"updateStrategy": {"rollingUpdate": {"partition": 0}}}), True),
        ({"apiVersion": "apps/v1", "metadata": {}, "spec": {}}, False),
    ],
)
def test_rollout_is_detected(manifest: Manifest, rolls: bool) -> None:
    assert is_rolling(manifest) is rolls


@pytest.mark.parametrize(
    ("manifest", "paused"),
    [({}, False), ({"spec": {"paused": False}}, False), ({"spec": {"paused": True}}, True)],
)
def test_paused_workload_is_detected(manifest: Manifest, paused: bool) -> None:
    assert is_paused(manifest) is paused


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ({}, ""),
        ({"matchLabels": {"a": "1", "b": "2"}}, "a=1,b=2"),
        (
            {
                "matchLabels": {"a": "1"},
                "matchExpressions": [
                    {"key": "b", "operator": "In", "values": ["x", "y"]},
                    {"key": "c", "operator": "NotIn", "values": ["z"]},
                    {"key": "d", "operator": "Exists"},
                    {"key": "e", "operator": "DoesNotExist"},
                ],
            },
            "a=1,b in (x,y),c notin (z),d,!e",
        ),
    ],
)
def test_selector_renders_as_query(selector: Manifest, text: str) -> None:
    assert selector_text(selector) == text


@pytest.mark.parametrize(("between", "is_ours"), [(0, True), (4, True), (5, True), (6, False)])
def test_controller_chain_is_followed_up_to_its_bound(between: int, is_ours: bool) -> None:
    cluster = FakeCluster(FakeClock())

    def owner(number: int) -> Manifest:
        uid = f"c{number}" if number < between else "workload"
        return {"apiVersion": "x/v1", "kind": "C", "name": uid, "uid": uid, "controller": True}

    for number in range(between):
        name = f"c{number}"
        metadata = {"name": name, "namespace": "default", "uid": name}
        metadata["ownerReferences"] = [owner(number + 1)]  # type: ignore[assignment]
        cluster.objects["C", "default", name] = {"kind": "C", "metadata": metadata}
    bystander = {"kind": "Node", "name": "n", "uid": "workload"}  # owns it, and controls nothing
    pod = {
        "metadata": {"name": "p", "namespace": "default", "ownerReferences": [bystander, owner(0)]}
    }
    owned = asyncio.run(PodOwnership().of(cluster, [pod], "workload"))
    assert (len(owned.ours), owned.unverified, owned.unresolved) == (int(is_ours), (), ())
