"""Rollouts of replicas that hold accelerators, in a cluster that has some free, or none."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.controller.sharing.caps import Caps
from support.rolling_world import RollingWorld, play_rollouts

NEW, BAD = "registry.example/server:2", "registry.example/none:1"
ONE: dict[str, Any] = {"scaling": {"minReplicas": 1, "maxReplicas": 4}}


async def least_ready(world: RollingWorld, seconds: int, name: str = "resnet") -> int:
    """Return the fewest replicas that served at any moment."""
    least = 1000
    for _ in range(seconds):
        await world.run_for(1.0)
        least = min(least, len(world.pods.ready(name)))
    return least


def images(world: RollingWorld, name: str = "resnet") -> set[str]:
    return {one["spec"]["containers"][0]["image"] for one in world.pods.ready(name)}


def surge(world: RollingWorld, name: str = "resnet") -> tuple[int, int]:
    deployment = world.cluster.find("Deployment", name)
    assert deployment is not None
    found = deployment["spec"]["strategy"]["rollingUpdate"]
    return found["maxSurge"], found["maxUnavailable"]


async def created(world: RollingWorld, capacity: int, **changes: Any) -> None:
    world.pods.capacity = capacity
    world.pods.bad_images = frozenset({BAD})
    world.create(**changes)
    await world.run_for(60.0)
    assert surge(world) == (1, 0)


def test_replica_serves_until_the_one_of_the_new_image_is_ready() -> None:
    async def scenario(world: RollingWorld) -> None:
        await created(world, 2, **ONE)
        world.image(NEW, **ONE)
        assert await least_ready(world, 60) == 1
        assert images(world) == {NEW}
        assert surge(world) == (1, 0)

    play_rollouts(scenario)


def test_without_a_free_accelerator_it_is_replaced_in_place_after_as_long_as_a_start() -> None:
    async def scenario(world: RollingWorld) -> None:
        await created(world, 1, **ONE)
        world.image(NEW, **ONE)
        assert await least_ready(world, 25) == 1
        assert "in place from" in world.message("AbleToScale")
        assert await least_ready(world, 40) == 0
        assert images(world) == {NEW}
        await world.run_for(10.0)
        assert surge(world) == (1, 0)

    play_rollouts(scenario)


def test_image_that_does_not_exist_costs_no_replica_and_its_correction_ends_it() -> None:
    async def scenario(world: RollingWorld) -> None:
        await created(world, 2, **ONE)
        world.image(BAD, **ONE)
        assert await least_ready(world, 300) == 1
        assert world.condition("Ready") == ("True", "Serving")
        assert world.condition("CapacityAvailable") == ("False", "ReplicasBroken")
        assert "ErrImagePull" in world.message("CapacityAvailable")
        assert "kubectl edit hisvc resnet --namespace default" in world.message("AbleToScale")
        world.image(NEW, **ONE)
        assert await least_ready(world, 60) == 1
        assert images(world) == {NEW}
        assert len(world.pods.of("resnet")) == 1

    play_rollouts(scenario)


def test_earlier_image_applied_again_ends_a_rollout_that_cannot_end() -> None:
    async def scenario(world: RollingWorld) -> None:
        await created(world, 2, **ONE)
        (before,) = world.pods.ready("resnet")
        world.image(BAD, **ONE)
        await world.run_for(60.0)
        world.edit(**ONE)
        assert await least_ready(world, 30) == 1
        (pod,) = world.pods.of("resnet")
        assert pod["metadata"]["uid"] == before["metadata"]["uid"]

    play_rollouts(scenario)


@pytest.mark.parametrize("needs", ["node(s) didn't match Pod's node affinity/selector"])
def test_place_that_no_replica_would_give_back_costs_none(needs: str) -> None:
    async def scenario(world: RollingWorld) -> None:
        await created(world, 1, **ONE)
        world.pods.needs = needs
        world.image(NEW, **ONE)
        assert await least_ready(world, 300) == 1

    play_rollouts(scenario)


def test_more_accelerators_than_a_replica_holds_cost_none() -> None:
    async def scenario(world: RollingWorld) -> None:
        await created(world, 1, **ONE)
        world.image(NEW, accelerator={"resource": "nvidia.com/gpu", "count": 2}, **ONE)
        assert await least_ready(world, 300) == 1
        assert "set rollout.maxSurge to 0" in world.message("AbleToScale")

    play_rollouts(scenario)


def test_wait_goes_on_where_the_operator_restarts() -> None:
    async def scenario(world: RollingWorld) -> None:
        await created(world, 1, **ONE)
        world.image(NEW, **ONE)
        for _ in range(6):
            await world.run_for(8.0)
            await world.restart_operator(1.0)
        await world.run_for(30.0)
        assert images(world) == {NEW}
        await world.run_for(10.0)
        assert surge(world) == (1, 0)

    play_rollouts(scenario)


def test_rollout_of_several_replaces_all_of_them_in_place_one_at_a_time() -> None:
    async def scenario(world: RollingWorld) -> None:
        three: dict[str, Any] = {"scaling": {"minReplicas": 3, "maxReplicas": 3}}
        world.pods.drain_s = 20.0
        await created(world, 3, **three)
        world.image(NEW, **three)
        assert await least_ready(world, 200) == 2
        assert images(world) == {NEW}
        assert surge(world) == (1, 0)

    play_rollouts(scenario)


def test_one_free_accelerator_replaces_all_of_them_without_a_gap() -> None:
    async def scenario(world: RollingWorld) -> None:
        three: dict[str, Any] = {"scaling": {"minReplicas": 3, "maxReplicas": 3}}
        world.pods.drain_s = 20.0
        await created(world, 4, **three)
        world.image(NEW, **three)
        assert await least_ready(world, 200) == 3
        assert images(world) == {NEW}

    play_rollouts(scenario)


def test_service_with_fewer_nodes_than_replicas_rolls_out_too() -> None:
    async def scenario(world: RollingWorld) -> None:
        three: dict[str, Any] = {"scaling": {"minReplicas": 3, "maxReplicas": 3}}
        await created(world, 2, **three)
        world.image(NEW, **three)
        assert await least_ready(world, 200) == 1
        assert images(world) == {NEW}
        assert len(world.pods.ready("resnet")) == 2

    play_rollouts(scenario)


def test_quota_without_room_is_waited_for_only_a_moment() -> None:
    async def scenario(world: RollingWorld) -> None:
        await created(world, 9, **ONE)
        world.pods.quota = 1
        world.image(NEW, **ONE)
        await world.run_for(40.0)
        assert images(world) == {NEW}

    play_rollouts(scenario)


def test_two_rollouts_at_once_keep_the_operators_limit_and_both_end() -> None:
    async def scenario(world: RollingWorld) -> None:
        world.caps = Caps(accelerators=3)
        await world.restart_operator()
        for name in ("one", "two"):
            world.create(name, **ONE)
        await world.run_for(60.0)
        for name in ("one", "two"):
            world.image(NEW, name, **ONE)
        for _ in range(60):
            await world.run_for(1.0)
            there = world.pods.of("one") + world.pods.of("two")
            assert sum("deletionTimestamp" not in pod["metadata"] for pod in there) <= 3
        assert images(world, "one") == images(world, "two") == {NEW}
        await world.run_for(10.0)

    play_rollouts(scenario)


def test_change_made_while_no_operator_ran_keeps_the_limit_too() -> None:
    async def scenario(world: RollingWorld) -> None:
        world.caps = Caps(accelerators=1)
        await world.restart_operator()
        await created(world, 9, **ONE)
        world.image(NEW, **ONE)
        await world.restart_operator()
        for _ in range(40):
            await world.run_for(1.0)
            there = world.pods.of("resnet")
            assert sum("deletionTimestamp" not in pod["metadata"] for pod in there) <= 1
        assert images(world) == {NEW}

    play_rollouts(scenario)


def test_two_rollouts_at_once_share_one_free_accelerator() -> None:
    async def scenario(world: RollingWorld) -> None:
        world.pods.capacity = 3
        for name in ("one", "two"):
            world.create(name, **ONE)
        await world.run_for(60.0)
        for name in ("one", "two"):
            world.image(NEW, name, **ONE)
        await world.run_for(120.0)
        assert images(world, "one") == images(world, "two") == {NEW}

    play_rollouts(scenario)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"maxSurge": 0}, (0, 1)),
        ({"maxUnavailable": 1}, (0, 1)),
        ({"maxSurge": 1}, (1, 0)),
        ({"maxSurge": 2, "maxUnavailable": 1}, (2, 1)),
    ],
)
def test_what_the_spec_says_of_rollouts_stands(
    given: dict[str, int], expected: tuple[int, int]
) -> None:
    async def scenario(world: RollingWorld) -> None:
        world.pods.capacity = 1
        world.create(rollout=given, **ONE)
        await world.run_for(60.0)
        world.image(NEW, rollout=given, **ONE)
        for _ in range(120):
            await world.run_for(1.0)
            assert surge(world) == expected

    play_rollouts(scenario)


def test_strategy_of_a_target_is_never_written() -> None:
    async def scenario(world: RollingWorld) -> None:
        strategy = {"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
        world.create_workload("own", strategy=strategy)
        world.create("own", target="own")
        await world.run_for(60.0)
        assert surge(world, "own") == (3, 2)
        assert ("apply", "Deployment") not in world.cluster.calls

    play_rollouts(scenario)
