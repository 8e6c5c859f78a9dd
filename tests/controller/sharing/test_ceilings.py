"""The operator's caps per service and in sum: growth ends, nothing is removed."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.controller.sharing.caps import Caps
from support.controller_world import REPLICA_RPS, World, play

GPUS: dict[str, Any] = {"resources": {"limits": {"nvidia.com/gpu": 2}}}


def settled(world: World) -> dict[str, int]:
    names = [name for (kind, _, name) in world.cluster.objects if kind == "Deployment"]
    return {name: world.replicas(name) for name in names}


async def restarted(world: World, caps: Caps) -> None:
    world.caps = caps
    await world.restart_operator()


def test_service_at_its_cap_stops_and_names_the_setting() -> None:
    async def scenario(world: World) -> None:
        await restarted(world, Caps(replicas_per_service=3))
        world.create()
        world.pods.arrivals_rps["resnet"] = 6 * REPLICA_RPS
        await world.run_for(90.0)
        assert settled(world) == {"resnet": 3}
        assert world.condition("ScalingLimited") == ("True", "OperatorLimit")
        assert "3 allowed; the operator allows 3 replicas per service" in world.message(
            "ScalingLimited"
        )
        assert "--max-replicas-per-service" in world.message("ScalingLimited")

    play(scenario)


def test_tighter_of_cap_and_max_replicas_is_named() -> None:
    async def scenario(world: World) -> None:
        await restarted(world, Caps(replicas_per_service=8, accelerators=50))
        world.create(scaling={"maxReplicas": 3})
        world.pods.arrivals_rps["resnet"] = 6 * REPLICA_RPS
        await world.run_for(90.0)
        assert settled(world) == {"resnet": 3}
        assert world.condition("ScalingLimited") == ("True", "MaxReplicas")

    play(scenario)


def test_lowered_cap_removes_nothing() -> None:
    async def scenario(world: World) -> None:
        world.create(scaling={"scaleDown": {"stabilizationWindow": "30s"}})
        world.pods.arrivals_rps["resnet"] = 5 * REPLICA_RPS
        await world.run_for(90.0)
        before = world.replicas()
        assert before >= 5
        await restarted(world, Caps(replicas_per_service=2))
        await world.run_for(120.0)
        assert world.replicas() == before
        assert world.condition("ScalingLimited") == ("True", "OperatorLimit")
        assert f"{before} replicas are kept and none is added" in world.message("ScalingLimited")
        world.pods.arrivals_rps["resnet"] = 8 * REPLICA_RPS
        await world.run_for(60.0)
        assert world.replicas() == before, "and nothing grows"
        world.pods.arrivals_rps["resnet"] = 0.0
        await world.run_for(600.0)
        assert world.replicas() == 1
        assert world.condition("ScalingLimited")[0] == "False"

    play(scenario)


def test_accelerators_of_all_services_stay_within_the_cap() -> None:
    async def scenario(world: World) -> None:
        await restarted(world, Caps(accelerators=5))
        for name in ("a", "b"):
            world.create(name)
            world.pods.arrivals_rps[name] = 6 * REPLICA_RPS
        for _ in range(60):
            await world.run_for(2.0)
            assert sum(settled(world).values()) <= 5
        assert sum(settled(world).values()) == 5
        said = world.message("ScalingLimited", "a") + world.message("ScalingLimited", "b")
        assert "5 accelerators in all" in said

    play(scenario)


def test_terminating_pods_count_their_accelerators() -> None:
    async def scenario(world: World) -> None:
        await restarted(world, Caps(accelerators=4))
        world.pods.drain_s = 60.0
        for name in ("a", "b"):
            world.create(name, scaling={"scaleDown": {"stabilizationWindow": "30s"}})
        world.pods.arrivals_rps["a"] = 2.5 * REPLICA_RPS
        await world.run_for(90.0)
        assert settled(world) == {"a": 3, "b": 1}
        world.pods.arrivals_rps |= {"a": 0.0, "b": 2.5 * REPLICA_RPS}
        most = 0
        for _ in range(150):
            await world.run_for(2.0)
            most = max(most, len(world.pods.of("a")) + len(world.pods.of("b")))
        assert settled(world) == {"a": 1, "b": 3}
        assert most == 4

    play(scenario)


def test_service_without_free_accelerators_is_created_later() -> None:
    async def scenario(world: World) -> None:
        await restarted(world, Caps(accelerators=1))
        world.create("a")
        await world.run_for(30.0)
        world.create("b")
        await world.run_for(30.0)
        assert settled(world) == {"a": 1}
        assert world.condition("Ready", "b") == ("False", "OperatorLimit")
        assert world.condition("ScalingLimited", "b") == ("True", "OperatorLimit")
        world.cluster.delete("InferenceService", "a")
        await world.run_for(30.0)
        assert settled(world) == {"b": 1}

    play(scenario)


@pytest.mark.parametrize("requested", [{}, {"replicas": 9}], ids=["a floor", "spec.replicas"])
def test_external_replicas_and_minimum_end_at_the_cap(requested: dict[str, Any]) -> None:
    async def scenario(world: World) -> None:
        await restarted(world, Caps(replicas_per_service=2))
        world.create(
            scaling={"mode": "External" if requested else "Auto", "minReplicas": 4}, **requested
        )
        await world.run_for(60.0)
        assert settled(world) == {"resnet": 2}

    play(scenario)


def test_new_process_counts_services_before_their_first_tick() -> None:
    async def scenario(world: World) -> None:
        await restarted(world, Caps(accelerators=4))
        world.create("a", scaling={"minReplicas": 3})
        await world.run_for(30.0)
        world.create("b")
        await world.run_for(30.0)
        world.pods.arrivals_rps["b"] = 6 * REPLICA_RPS
        await world.restart_operator()
        for _ in range(30):
            await world.run_for(2.0)
            assert sum(settled(world).values()) <= 4
        assert settled(world) == {"a": 3, "b": 1}

    play(scenario)


HIDDEN = {
    "in the server": {
        "accelerator": {"count": 0},
        "runtime": {"podTemplate": {"spec": {"containers": [GPUS | {"name": "server"}]}}},
    },
    "in a sidecar": {
        "accelerator": {"count": 0},
        "runtime": {"podTemplate": {"spec": {"containers": [GPUS | {"name": "other"}]}}},
    },
    "in an init container": {
        "accelerator": {"count": 0},
        "runtime": {"podTemplate": {"spec": {"initContainers": [GPUS | {"name": "first"}]}}},
    },
    "of another resource": {
        "accelerator": {"resource": "example.com/none", "count": 0},
        "runtime": {"resources": {"limits": {"nvidia.com/gpu": "2"}}},
    },
}


@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=list(HIDDEN))
def test_accelerators_that_the_spec_does_not_claim_count(hidden: dict[str, Any]) -> None:
    async def scenario(world: World) -> None:
        await restarted(world, Caps(accelerators=5))
        world.create(**hidden)
        world.pods.arrivals_rps["resnet"] = 6 * REPLICA_RPS
        await world.run_for(90.0)
        assert settled(world) == {"resnet": 2}, "two replicas of two accelerators, one is left"
        assert world.condition("ScalingLimited") == ("True", "OperatorLimit")
        assert "5 accelerators in all" in world.message("ScalingLimited")
        (event,) = world.cluster.events("AcceleratorsDiffer")
        assert (
            "requests 2 nvidia.com/gpu per replica and spec.accelerator claims none"
            in (event["note"])
        )
        await world.restart_operator()
        world.create("other")
        await world.run_for(60.0)
        assert settled(world) == {"resnet": 2, "other": 1}, "also before its first tick"

    play(scenario)


def test_target_is_counted_by_its_template_alone() -> None:
    async def scenario(world: World) -> None:
        await restarted(world, Caps(accelerators=3))
        world.create_workload("own")
        none = {"resource": "example.com/none", "count": 0}
        world.create("adopted", target="own", accelerator=none)
        world.pods.arrivals_rps["own"] = 6 * REPLICA_RPS
        await world.run_for(90.0)
        assert world.replicas("own") == 3

    play(scenario)


PHANTOM: dict[str, Any] = {"minReplicas": 900, "maxReplicas": 1000}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "its own"])
def test_replicas_that_a_quota_refuses_take_no_accelerators_from_others(kind: str) -> None:
    """900 replicas without a pod kept every other service from growing."""

    async def scenario(world: World) -> None:
        await restarted(world, Caps(accelerators=16))
        world.create("victim")
        await world.run_for(30.0)
        world.pods.refused = "exceeded quota: requests.nvidia.com/gpu=1"
        if kind == "its own":
            world.create("hostile", scaling=PHANTOM)
        else:
            world.create_workload("own", kind, replicas=900)
            world.create("hostile", target="own", kind=kind, scaling=PHANTOM)
        await world.run_for(30.0)
        assert not world.pods.of("hostile" if kind == "its own" else "own")
        world.pods.arrivals_rps["victim"] = 6 * REPLICA_RPS
        await world.run_for(60.0)
        assert world.replicas("victim") >= 6

    play(scenario)


def test_status_that_says_a_billion_replicas_takes_no_accelerators_from_others() -> None:
    async def scenario(world: World) -> None:
        world.create("victim")
        await world.run_for(30.0)
        world.create("hostile", target="missing", status={"replicas": 10**9})
        world.pods.arrivals_rps["victim"] = 6 * REPLICA_RPS
        await restarted(world, Caps(accelerators=16))
        await world.run_for(120.0)
        assert world.replicas("victim") >= 6

    play(scenario)
