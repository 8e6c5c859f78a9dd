"""Replicas lost or broken under load: distinguished, given a remedy, and never multiplied."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headroom.api.timestamps import rfc3339
from support.cluster_world import Manifest
from support.controller_world import REPLICA_RPS, World, play

LOAD_RPS = 4.5 * REPLICA_RPS


async def serving(world: World, **scaling: Any) -> int:
    """Bring a service up under load; return its replicas."""
    world.create(scaling={"maxReplicas": 20, **scaling}, warmup={"timeout": "60s"})
    await world.run_for(20.0)
    world.pods.arrivals_rps["resnet"] = LOAD_RPS
    await world.run_for(120.0)
    assert len(world.pods.ready("resnet")) == world.replicas() >= 5
    return world.replicas()


def not_ready(world: World, *, status: str = "False", **condition: str) -> Manifest:
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": ago(world, 300.0)}
    ready = {"type": "Ready", "status": status, "lastTransitionTime": ago(world, 120.0)}
    return {"conditions": [ready | condition, scheduled]}


def ago(world: World, seconds: float) -> str:
    return rfc3339(world.clock.now_s() - seconds)


def waiting(reason: str, message: str) -> Manifest:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"containerStatuses": [{"name": "server", "restartCount": 4, "state": state}]}


def out_of_memory(world: World) -> Manifest:
    ended = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": ago(world, 1.0)}
    container = {"name": "server", "restartCount": 3, "state": {"running": {}}}
    return {"containerStatuses": [container | {"lastState": {"terminated": ended}}]}


def late(world: World) -> Manifest:
    running = {"running": {"startedAt": ago(world, 200.0)}}
    return {"containerStatuses": [{"name": "server", "restartCount": 0, "state": running}]}


TROUBLES = {
    "out of memory": (lambda w: not_ready(w) | out_of_memory(w), "OOMKilled", "memory limit"),
    "crash loop": (
        lambda w: not_ready(w) | waiting("CrashLoopBackOff", "back-off 40s"),
        "CrashLoopBackOff: back-off 40s",
        "kubectl logs resnet-abc-1 --container server --previous",
    ),
    "image": (
        lambda w: not_ready(w) | waiting("ImagePullBackOff", "no such tag"),
        "ImagePullBackOff: no such tag",
        "correct the image (name, tag, digest)",
    ),
    "late": (lambda w: not_ready(w) | late(w), "warm-up timeout 60 s", "kubectl describe pod"),
    "node lost": (
        lambda w: not_ready(
            w, status="Unknown", reason="NodeStatusUnknown", message="Kubelet stopped posting."
        ),
        "NodeStatusUnknown: Kubelet stopped posting.",
        "repair its node",
    ),
}


@pytest.mark.parametrize(("spoil", "words", "step"), TROUBLES.values(), ids=TROUBLES)
def test_broken_majority_is_reported_and_not_multiplied(spoil: Any, words: str, step: str) -> None:
    async def scenario(world: World) -> None:
        before = await serving(world)
        for pod in world.pods.of("resnet")[: before // 2 + 1]:
            world.pods.spoiled[pod["metadata"]["name"]] = spoil(world)
        await world.run_for(40.0)
        assert world.replicas() == before, "the next one would break too, and none is removed"
        assert world.condition("CapacityAvailable") == ("False", "ReplicasBroken")
        assert words in world.message("CapacityAvailable")
        assert step in world.message("CapacityAvailable")
        world.pods.spoiled.clear()
        await world.run_for(60.0)
        assert world.condition("CapacityAvailable")[0] == "True"
        assert abs(world.replicas() - before) <= 1

    play(scenario)


def test_preempted_pods_are_replaced_once() -> None:
    async def scenario(world: World) -> None:
        before = await serving(world)
        world.cluster.scale_writes.clear()
        for pod in world.pods.of("resnet")[: before // 2]:
            world.cluster.delete("Pod", pod["metadata"]["name"])
        await world.run_for(60.0)
        assert len(world.pods.ready("resnet")) >= before
        assert world.cluster.scale_writes == [], "the ReplicaSet replaces; nothing is added"
        assert world.condition("CapacityAvailable")[0] == "True"

    play(scenario)


def test_preempted_pods_without_a_node_are_named_and_not_multiplied() -> None:
    async def scenario(world: World) -> None:
        before = await serving(world)
        taken = [pod["metadata"]["name"] for pod in world.pods.of("resnet")[: before // 2]]
        told = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        for name in taken:
            said = not_ready(world)
            world.pods.spoiled[name] = said | {"conditions": [*said["conditions"], told]}
        await world.run_for(4.0)
        world.pods.capacity = before - before // 2
        for name in taken:
            world.cluster.delete("Pod", name)
        await world.run_for(120.0)
        assert world.replicas() <= before + 1
        assert world.condition("CapacityAvailable") == ("False", "ReplicasUnschedulable")
        assert "Insufficient nvidia.com/gpu" in world.message("CapacityAvailable")
        assert f"{taken[0]} was preempted by a pod of" in world.message("CapacityAvailable")
        assert "set spec.priorityClassName" in world.message("CapacityAvailable")

    play(scenario)


def test_flapping_readiness_keeps_replicas() -> None:
    async def scenario(world: World) -> None:
        before = await serving(world)
        flapping = [pod["metadata"]["name"] for pod in world.pods.of("resnet")[: before // 2]]
        world.cluster.scale_writes.clear()
        for turn in range(30):
            since = {"lastTransitionTime": ago(world, 0.0)}
            unready = not_ready(world)
            unready["conditions"][0] |= since
            world.pods.spoiled = dict.fromkeys(flapping, unready) if turn % 2 else {}
            await world.run_for(4.0)
        assert [n for n in world.cluster.scale_writes if n < before] == []
        assert max(world.cluster.scale_writes, default=before) <= before + before // 2

    play(scenario)


def test_rejected_pods_are_not_counted_as_starting() -> None:
    async def scenario(world: World) -> None:
        world.create(scaling={"maxReplicas": 20})
        await world.run_for(20.0)
        world.pods.refused = 'pods "resnet-x" is forbidden: exceeded quota: gpus, used: 1'
        world.pods.arrivals_rps["resnet"] = LOAD_RPS
        await world.run_for(120.0)
        assert world.status()["warmingReplicas"] == 0
        assert len(world.pods.of("resnet")) == 1
        assert world.condition("CapacityAvailable") == ("False", "PodCreationForbidden")
        assert "exceeded quota: gpus" in world.message("CapacityAvailable")
        assert "raise the quota" in world.message("CapacityAvailable")
        asked = world.replicas()
        await world.run_for(120.0)
        assert world.replicas() <= asked + 1, "what is refused does not grow"
        world.pods.refused = ""
        await asyncio.sleep(40.0)
        assert world.condition("CapacityAvailable")[0] == "True"

    play(scenario)
