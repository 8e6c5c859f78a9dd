"""A pod is a workload's where its chain of controllers, by UID, reaches it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headroom.controller.gather.pods.pod_ownership import MOST_READS, REMEMBERED_CALLS, PodOwnership
from headroom.errors import Forbidden, Unavailable
from support.cluster_world import FakeClock, FakeCluster

Manifest = dict[str, Any]


def owned(kind: str, name: str, uid: str, by: Manifest | None = None) -> Manifest:
    references = []
    if by is not None:
        references = [
            {
                "apiVersion": "apps/v1",
                "kind": by["kind"],
                "name": by["metadata"]["name"],
                "uid": by["metadata"]["uid"],
                "controller": True,
            }
        ]
    metadata = {"name": name, "namespace": "default", "uid": uid, "ownerReferences": references}
    return {"kind": kind, "metadata": metadata}


class Scene:
    """A cluster of controllers, and one lineage that asks it."""

    def __init__(self, *objects: Manifest) -> None:
        self.cluster = FakeCluster(FakeClock())
        self.lineage = PodOwnership()
        self.unresolved: list[str] = []
        for one in objects:
            self.cluster.objects[one["kind"], "default", one["metadata"]["name"]] = one

    def ours(self, *pods: Manifest, uid: str = "d") -> tuple[list[str], list[str]]:
        found = asyncio.run(self.lineage.of(self.cluster, pods, uid))
        self.unresolved = [one["metadata"]["name"] for one in found.unresolved]
        return [one["metadata"]["name"] for one in found.ours], [
            one.why for one in found.unverified
        ]


DEPLOYMENT = owned("Deployment", "llm", "d")
SET = owned("ReplicaSet", "llm-abc", "rs", by=DEPLOYMENT)
POD = owned("Pod", "llm-abc-1", "p", by=SET)
LEADERS = owned("StatefulSet", "group", "sts", by=owned("LeaderWorkerSet", "group", "d"))


@pytest.mark.parametrize(
    ("objects", "pod", "is_ours"),
    [
        ([SET], POD, True),
        ([], owned("Pod", "llm-0", "p", by=DEPLOYMENT), True),
        ([LEADERS], owned("Pod", "group-0", "p", by=LEADERS), True),
        ([SET], owned("Pod", "impostor", "p"), False),
        ([SET], owned("Pod", "other", "p", by=owned("ReplicaSet", "llm-abc", "older")), False),
        ([], POD, False),
        ([owned("ReplicaSet", "llm-abc", "rs")], POD, False),
        ([owned("ReplicaSet", "llm-abc", "rs", by=owned("Deployment", "llm", "x"))], POD, False),
    ],
    ids=[
        "of its ReplicaSet",
        "its own",
        "of a set of its own",
        "labels alone",
        "of a namesake that is gone",
        "of a set that is gone",
        "of a set without a controller",
        "of a Deployment that had the name",
    ],
)
def test_pod_owner_is_found_by_controller_chain(
    objects: list[Manifest], pod: Manifest, is_ours: bool
) -> None:
    scene = Scene(*objects)
    scene.cluster.objects.setdefault(
        ("Deployment", "default", "llm"), owned("Deployment", "llm", "x")
    )
    assert scene.ours(pod) == ([pod["metadata"]["name"]] if is_ours else [], [])


def test_controller_cycle_ends() -> None:
    one, other = owned("ReplicaSet", "a", "a"), owned("ReplicaSet", "b", "b")
    scene = Scene(owned("ReplicaSet", "a", "a", by=other), owned("ReplicaSet", "b", "b", by=one))
    assert scene.ours(owned("Pod", "p", "p", by=one)) == ([], [])


def test_each_controller_is_read_once_while_it_has_pods() -> None:
    scene = Scene(SET)
    pods = [owned("Pod", f"llm-abc-{n}", f"p{n}", by=SET) for n in range(5)]
    for _ in range(3):
        assert len(scene.ours(*pods)[0]) == 5
    assert scene.cluster.calls == [("get", "ReplicaSet")]
    scene.ours()
    scene.ours(*pods)
    assert scene.cluster.calls == [("get", "ReplicaSet")] * 2


def test_pod_with_unreadable_owner_is_reported() -> None:
    scene = Scene(SET)
    scene.cluster.fail("get", "ReplicaSet", Forbidden("cannot get replicasets"))
    assert scene.ours(POD) == ([], ["its owner cannot be read: cannot get replicasets"])
    assert scene.ours(POD) == (["llm-abc-1"], [])


def test_unanswered_owner_read_is_raised() -> None:
    scene = Scene(SET)
    scene.cluster.fail("get", "ReplicaSet", Unavailable("down"))
    with pytest.raises(Unavailable):
        scene.ours(POD)


def test_stray_pods_cost_one_read_each_in_half_a_minute() -> None:
    strays = [
        owned("Pod", f"stray-{number}", f"p{number}", by=owned("ReplicaSet", "none", f"u{number}"))
        for number in range(50)
    ]
    scene = Scene(SET)
    for _ in range(REMEMBERED_CALLS):
        assert scene.ours(POD, *strays) == (["llm-abc-1"], [])
    assert len(scene.cluster.calls) == 1 + 50


def test_stray_pods_with_forbidden_owners_cost_few_reads() -> None:
    """Any pod may name a Secret as its controller, which the operator may not read."""
    strays = [
        owned("Pod", f"stray-{number}", f"p{number}", by=owned("Secret", "none", f"u{number}"))
        for number in range(50)
    ]
    scene = Scene(SET)
    scene.cluster.fail("get", "Secret", Forbidden("cannot get secrets"), times=3000)
    for _ in range(60):
        found, reasons = scene.ours(POD, *strays)
        assert found == ["llm-abc-1"]
        assert reasons == ["its owner cannot be read: cannot get secrets"] * 50
    assert len(scene.cluster.calls) <= 1 + 50 * 8


def test_controller_that_was_not_found_is_looked_up_again() -> None:
    scene = Scene()
    assert scene.ours(POD) == ([], [])
    scene.cluster.objects["ReplicaSet", "default", "llm-abc"] = SET
    for _ in range(2 * REMEMBERED_CALLS):
        scene.ours(POD)
    assert scene.ours(POD) == (["llm-abc-1"], [])


def strays(count: int) -> list[Manifest]:
    return [
        owned("Pod", f"stray-{number}", f"p{number}", by=owned("ReplicaSet", "none", f"u{number}"))
        for number in range(count)
    ]


def test_call_reads_few_controllers_and_says_which_pods_it_does_not_know_yet() -> None:
    """1000 pods with an owner each: 1001 reads in one tick, one after the other."""
    scene, pods = Scene(SET), strays(1000)
    for call in range(1, 17):
        scene.ours(*pods, POD)
        assert len(scene.cluster.calls) == min(MOST_READS * call, 1001)
        assert len(scene.unresolved) == max(0, 1001 - MOST_READS * call)
    assert scene.ours(*pods, POD) == (["llm-abc-1"], [])
    calls = len(scene.cluster.calls)
    for _ in range(400):
        assert scene.ours(*pods, POD) == (["llm-abc-1"], [])
        assert not scene.unresolved  # what was not found keeps its answer until it is read again
    assert len(scene.cluster.calls) - calls <= 6 * 1000


def test_known_pods_stay_ours_while_new_strays_are_read_and_older_pods_are_read_first() -> None:
    scene, pods = Scene(SET, LEADERS), strays(200)
    assert scene.ours(POD) == (["llm-abc-1"], [])
    for pod in pods:
        pod["metadata"]["creationTimestamp"] = "2026-01-01T00:00:02Z"
    older = owned("Pod", "group-0", "g0", by=LEADERS)
    older["metadata"]["creationTimestamp"] = "2026-01-01T00:00:01Z"
    assert scene.ours(*pods, older, POD) == (["group-0", "llm-abc-1"], [])
    assert len(scene.unresolved) == 200 - (MOST_READS - 1)


def test_large_set_of_groups_is_whole_after_some_calls_and_never_partly_absent() -> None:
    """A LeaderWorkerSet of 100 groups: each worker's chain has a set and a pod of its own."""
    workers, objects = [], [LEADERS]
    for group in range(100):
        leader = owned("Pod", f"group-{group}", f"l{group}", by=LEADERS)
        own = owned("StatefulSet", f"group-{group}", f"s{group}", by=leader)
        workers += [owned("Pod", f"group-{group}-1", f"w{group}", by=own)]
        objects += [leader, own]
    scene = Scene(*objects)
    scene.cluster.objects["StatefulSet", "default", "group"] = LEADERS
    for _ in range(10):
        ours, unverified = scene.ours(*workers)
        assert not unverified
        assert len(ours) + len(scene.unresolved) == 100
    assert len(ours) == 100
