"""Slow replicas are evicted, named in a condition and an event, and replaced."""

from __future__ import annotations

import pytest

from headroom.errors import Forbidden, NotFound, Unavailable
from support.controller_world import REPLICA_RPS, World, play

SCALING = {"minReplicas": 3, "maxReplicas": 6}


async def with_a_slow_pod(world: World, scaling: dict[str, object] | None = None) -> str:
    """Let three replicas serve for some minutes; then one takes ten times as long."""
    world.create(scaling={**SCALING, **(scaling or {})})
    world.pods.arrivals_rps["resnet"] = 1.8 * REPLICA_RPS
    await world.run_for(240.0)
    assert world.condition("ReplicasHealthy") == ("True", "ReplicasAlike")
    name = str(world.pods.ready("resnet")[0]["metadata"]["name"])
    world.pods.slow[name] = 10.0
    return name


def names(world: World) -> list[str]:
    return [str(one["metadata"]["name"]) for one in world.pods.ready("resnet")]


def evictions(world: World) -> int:
    return world.cluster.calls.count(("evict", "Pod"))


def test_slow_replica_is_evicted_named_and_replaced() -> None:
    async def scenario(world: World) -> None:
        slow = await with_a_slow_pod(world)
        await world.run_for(100.0)
        assert slow not in names(world)
        (event,) = world.cluster.events("ReplicaReplaced")
        assert event["note"].startswith(f"evicted pod {slow}, which takes ")
        assert event["type"] == "Warning"
        assert evictions(world) == 1
        await world.run_for(60.0)
        assert world.condition("ReplicasHealthy") == ("True", "ReplicasAlike")
        assert len(names(world)) >= 3
        await world.run_for(900.0)
        assert evictions(world) == 1

    play(scenario)


@pytest.mark.parametrize(
    ("scaling", "why"),
    [
        ({"replaceSlowReplicas": False}, "kept: scaling.replaceSlowReplicas is false"),
        ({"mode": "Recommend"}, "kept: scaling.mode is Recommend"),
    ],
)
def test_slow_replica_is_kept_and_named_where_it_may_not_be_replaced(
    scaling: dict[str, object], why: str
) -> None:
    async def scenario(world: World) -> None:
        slow = await with_a_slow_pod(world, scaling)
        await world.run_for(150.0)
        assert slow in names(world)
        assert evictions(world) == 0
        assert world.condition("ReplicasHealthy") == ("False", "ReplicaSlow")
        message = world.message("ReplicasHealthy")
        assert message.startswith(f"{slow} takes ")
        assert why in message

    play(scenario)


def test_eviction_that_a_disruption_budget_refuses_is_repeated_and_reported() -> None:
    async def scenario(world: World) -> None:
        slow = await with_a_slow_pod(world)
        refusal = "Cannot evict pod as it would violate the pod's disruption budget. (429)"
        world.cluster.fail("evict", "Pod", Unavailable(refusal), times=5)
        while not evictions(world):
            await world.run_for(2.0)
        assert slow in names(world)
        assert refusal in world.message("ReplicasHealthy")
        await world.run_for(30.0)
        assert slow not in names(world)
        assert evictions(world) == 6

    play(scenario)


def test_forbidden_eviction_is_reported_and_capacity_is_added_instead() -> None:
    async def scenario(world: World) -> None:
        slow = await with_a_slow_pod(world)
        world.cluster.fail("evict", "Pod", Forbidden("pods/eviction is forbidden"), times=9)
        await world.run_for(180.0)
        assert slow in names(world)
        assert evictions(world) == 1
        assert "pods/eviction is forbidden" in world.message("ReplicasHealthy")
        assert world.replicas() > 3

    play(scenario)


def test_pod_that_is_gone_already_is_no_error() -> None:
    async def scenario(world: World) -> None:
        await with_a_slow_pod(world)
        gone = NotFound('pods "resnet-abc-1" not found (404)')
        world.cluster.fail("evict", "Pod", gone, times=2)
        await world.run_for(200.0)
        assert evictions(world) == 3
        assert set(world.recorder.outcomes) == {"ok"}

    play(scenario)
