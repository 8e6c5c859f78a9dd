"""Pods that a scale-down takes: broken ones, then the least loaded; and the safety of marks."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.controller.act.victims import MOST_MARKED, victims
from headroom.controller.gather.pods.pods import MarkedBy, ObservedPod
from headroom.errors import Conflict, Forbidden, Unavailable
from headroom.resources.names import DELETION_COST, REMOVED_FIRST
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.observation import Pod, PodSample, PodState
from support.controller_world import REPLICA_RPS, World, play

NO_LATENCY = LatencyCounts(bounds_s=(), counts=())


def pod(
    name: str,
    state: PodState = PodState.READY,
    *,
    ready_s: float = 0.0,
    marked_by: MarkedBy = MarkedBy.NONE,
    in_replica_set: bool = True,
) -> ObservedPod:
    detail = "CrashLoopBackOff" if state is PodState.BROKEN else ""
    return ObservedPod(
        pod=Pod(uid=name, state=state, created_s=0.0, ready_s=ready_s, detail=detail),
        name=name,
        ip="10.0.0.1",
        in_replica_set=in_replica_set,
        marked_by=marked_by,
    )


def load(pod: str, waiting: int, running: int) -> PodSample:
    return PodSample(
        pod=pod,
        time_s=0.0,
        arrivals=0.0,
        missed=0.0,
        waiting=waiting,
        running=running,
        latency=NO_LATENCY,
    )


READY = [pod("a"), pod("b"), pod("c"), pod("d", ready_s=9.0)]
LOADS = [load("a", 4, 2), load("b", 0, 1), load("c", 0, 3), load("d", 2, 1)]
CASES: dict[str, tuple[list[ObservedPod], list[PodSample], int, list[str]]] = {
    "the least loaded, waiting and running": (READY, LOADS, 1, ["b"]),
    "of equals the youngest": (READY, LOADS, 2, ["b", "d"]),
    "all the same: the ReplicaSet knows better": (
        READY,
        [load(name, 0, 1) for name in "abcd"],
        2,
        [],
    ),
    "no pod states its load": (READY, [], 2, []),
    "a pod without a stated load may be busy": (READY, LOADS[:3], 3, ["b", "c", "a"]),
    "all go": (READY, LOADS, 4, []),
    "none goes": (READY, LOADS, 0, []),
    "the broken before the warming": (
        [*READY, pod("e", PodState.WARMING), pod("f", PodState.BROKEN)],
        LOADS,
        1,
        ["f"],
    ),
    "pods that are not ready go first, then the least loaded": (
        [*READY, pod("e", PodState.WARMING), pod("f", PodState.BROKEN)],
        LOADS,
        3,
        ["b"],
    ),
    "only broken ones are not ready": (
        [*READY, pod("e", PodState.BROKEN), pod("f", PodState.BROKEN)],
        LOADS,
        1,
        [],
    ),
    "who leaves already is not taken again": (
        [*READY, pod("e", PodState.TERMINATING)],
        LOADS,
        1,
        ["b"],
    ),
    "costs of another client are kept": (
        [*READY[:3], pod("d", marked_by=MarkedBy.OTHERS)],
        LOADS,
        1,
        [],
    ),
    "a StatefulSet takes its last": (
        [pod(name, in_replica_set=False) for name in "abcd"],
        LOADS,
        1,
        [],
    ),
}


@pytest.mark.parametrize(("pods", "samples", "removed", "names"), CASES.values(), ids=CASES)
def test_victims_by_state_and_load(
    pods: list[ObservedPod], samples: list[PodSample], removed: int, names: list[str]
) -> None:
    assert [one.pod.name for one in victims(pods, samples, removed)] == names


def test_large_removal_marks_the_first() -> None:
    pods = [pod(f"p{n}") for n in range(60)]
    samples = [load(f"p{n}", n, 0) for n in range(60)]
    found = victims(pods, samples, 50)
    assert [one.pod.name for one in found] == [f"p{n}" for n in range(MOST_MARKED)]
    assert found[3].why == "least loaded: 3 requests in flight"


SCALING = {"scaleDown": {"stabilizationWindow": "30s"}}


async def raised(world: World) -> None:
    """Four busy replicas, two requests on all but the second, then no more load."""
    world.create(scaling=SCALING)
    await world.run_for(20.0)
    world.pods.arrivals_rps["resnet"] = 3.5 * REPLICA_RPS
    await world.run_for(60.0)
    assert world.replicas() >= 4
    for number, one in enumerate(world.pods.of("resnet")):
        world.pods.running[one["metadata"]["name"]] = 0 if number == 1 else 2


def marked(world: World) -> list[str]:
    return [
        one["metadata"]["name"]
        for one in world.pods.of("resnet")
        if DELETION_COST in one["metadata"].get("annotations", {})
    ]


def test_idle_replica_is_removed_before_busy_ones() -> None:
    async def scenario(world: World) -> None:
        await raised(world)
        idle, seen = world.pods.of("resnet")[1]["metadata"]["name"], list[str]()

        def look(kind: str, changed: dict[str, Any]) -> None:
            notify(kind, changed)
            if kind == "DELETED" and changed["kind"] == "Pod":
                seen.append(changed["metadata"].get("annotations", {}).get(REMOVED_FIRST, ""))

        notify = world.cluster.on_change
        world.cluster.on_change = look
        before = world.replicas()
        world.pods.arrivals_rps["resnet"] = 2.2 * REPLICA_RPS
        await world.run_for(120.0)
        assert world.replicas() < before
        assert seen[0] == "least loaded: 0 requests in flight"
        assert idle not in [one["metadata"]["name"] for one in world.pods.of("resnet")]
        assert marked(world) == [], "who stays keeps no mark"

    play(scenario)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Forbidden("no"), "could not be marked to be removed first: no"),
        (Conflict("gone"), ""),
        (Unavailable("x"), ""),
    ],
    ids=["forbidden", "gone", "away"],
)
def test_rejected_mark_stops_no_scale_down(error: Exception, said: str) -> None:
    async def scenario(world: World) -> None:
        await raised(world)
        world.cluster.fail("apply", "Pod", error, times=1000)  # type: ignore[arg-type]
        world.pods.arrivals_rps["resnet"] = 0.5 * REPLICA_RPS
        before, messages = world.replicas(), set[str]()
        for _ in range(60):
            await world.run_for(2.0)
            messages.add(world.message("AbleToScale"))
        assert world.replicas() < before
        assert said in " ".join(messages)
        if isinstance(error, Forbidden):
            assert world.cluster.calls.count(("apply", "Pod")) <= 20, "once, and not at every step"

    play(scenario)


def test_mark_on_a_kept_pod_is_removed() -> None:
    async def scenario(world: World) -> None:
        world.create(scaling={"minReplicas": 2})
        await world.run_for(30.0)
        ours, theirs = world.pods.of("resnet")
        ours["metadata"]["annotations"] = {DELETION_COST: "-1000", REMOVED_FIRST: "least loaded"}
        theirs["metadata"]["annotations"] = {DELETION_COST: "7"}
        uid = ours["metadata"]["uid"]
        world.cluster.applied[uid, "headroom-victims"] = {DELETION_COST, REMOVED_FIRST}
        await world.run_for(6.0)
        assert ours["metadata"]["annotations"] == {}
        assert theirs["metadata"]["annotations"] == {DELETION_COST: "7"}
        assert world.cluster.calls.count(("apply", "Pod")) == 1

    play(scenario)
