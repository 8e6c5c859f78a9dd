"""What the operator allows each service and all together: growth ends, nothing is removed."""

from __future__ import annotations

from typing import Any

import pytest

from controller_world import REPLICA_RPS, World, play
from headroom.controller.sharing.ceilings import Caps


def settled(world: World) -> dict[str, int]:
    names = [name for (kind, _, name) in world.cluster.objects if kind == "Deployment"]
    return {name: world.replicas(name) for name in names}


async def restarted(world: World, caps: Caps) -> None:
    world.caps = caps
    await world.restart_operator()


def test_a_service_grows_to_its_cap_and_says_who_can_raise_it() -> None:
    async def story(world: World) -> None:
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

    play(story)


def test_the_tighter_of_cap_and_max_replicas_is_named() -> None:
    async def story(world: World) -> None:
        await restarted(world, Caps(replicas_per_service=8, accelerators=50))
        world.create(scaling={"maxReplicas": 3})
        world.pods.arrivals_rps["resnet"] = 6 * REPLICA_RPS
        await world.run_for(90.0)
        assert settled(world) == {"resnet": 3}
        assert world.condition("ScalingLimited") == ("True", "AtMaxReplicas")

    play(story)


def test_a_cap_that_is_lowered_removes_nothing_and_says_so_until_load_goes() -> None:
    async def story(world: World) -> None:
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

    play(story)


def test_all_services_together_hold_no_more_accelerators_than_allowed() -> None:
    async def story(world: World) -> None:
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

    play(story)


def test_pods_that_leave_still_hold_theirs() -> None:
    async def story(world: World) -> None:
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

    play(story)


def test_a_service_for_which_nothing_is_left_is_not_made_and_is_when_there_is() -> None:
    async def story(world: World) -> None:
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

    play(story)


@pytest.mark.parametrize("wish", [{}, {"replicas": 9}], ids=["a floor", "a wish"])
def test_a_wish_and_a_floor_end_at_the_cap(wish: dict[str, Any]) -> None:
    async def story(world: World) -> None:
        await restarted(world, Caps(replicas_per_service=2))
        world.create(scaling={"mode": "External" if wish else "Auto", "minReplicas": 4}, **wish)
        await world.run_for(60.0)
        assert settled(world) == {"resnet": 2}

    play(story)


def test_a_new_process_counts_what_it_has_not_looked_at_yet() -> None:
    async def story(world: World) -> None:
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

    play(story)
