"""Replicas as load moves them, and as others write them in between."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from headroom.errors import ClusterError, Forbidden, Unavailable
from support.cluster_world import Manifest
from support.controller_world import REPLICA_RPS, World, play


def test_raised_minimum_is_a_service_that_warms_up() -> None:
    async def scenario(world: World) -> None:
        world.create(scaling={"minReplicas": 1})
        await world.run_for(60.0)
        world.edit(scaling={"minReplicas": 2})
        await world.run_for(10.0)
        (warning,) = [one for one in world.cluster.events() if one["type"] == "Warning"]
        assert warning["reason"] == "WarmingUp"
        assert "1 of 2 replicas are ready" in warning["note"]

    play(scenario)


def test_load_scales_up_and_back_to_the_minimum() -> None:
    async def scenario(world: World) -> None:
        world.create(scaling={"scaleDown": {"stabilizationWindow": "60s"}})
        await world.run_for(20.0)
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(60.0)
        peak = world.replicas()
        assert 4 <= peak <= 10
        note = world.cluster.events("ScaledUp")[0]["note"]
        assert re.match(r"1 -> (\d+), (\w+): \w+ needs \1 ", note), note
        assert world.cluster.events("Created")[0]["note"] == "created the Deployment with 1 replica"
        assert "minReplicas (1) serve" in world.message("SLOFeasible")
        assert "waits 10s for replicas to start" in world.message("SLOFeasible")
        world.pods.arrivals_rps["resnet"] = 0.0
        await world.run_for(400.0)
        assert world.replicas() == 1
        assert world.cluster.events("ScaledDown")
        assert set(world.cluster.scale_writes) >= {peak, 1}

    play(scenario)


def test_quiet_service_writes_status_once_a_minute() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(90.0)  # what was created is read again within a minute
        world.cluster.calls.clear()
        await world.run_for(120.0)
        assert world.cluster.calls.count(("get", "Deployment")) >= 55
        assert world.cluster.writes() == [("apply_status", "InferenceService")] * 2

    play(scenario)


def test_replicas_that_admission_changes_are_no_success() -> None:
    """A policy that caps replicas accepts the write, and stores less."""

    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(20.0)
        world.cluster.admitted_replicas = 2
        world.edit(scaling={"minReplicas": 4})
        await world.run_for(20.0)
        assert world.replicas() == 2
        assert world.condition("AbleToScale") == ("False", "ScaleFailed")
        assert "4 replicas were written and 2 are stored" in world.message("AbleToScale")
        assert world.message("Ready").endswith("minReplicas is 4; see AbleToScale")
        assert world.status()["replicas"] == 2

    play(scenario)


def test_status_is_written_before_the_scale_that_it_explains() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(20.0)
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        world.cluster.calls.clear()
        seen: list[Any] = []
        follow = world.cluster.before_call

        def look(verb: str, kind: str) -> None:
            follow(verb, kind)
            if verb == "apply_scale":
                seen.append(world.status()["decision"]["replicas"])

        world.cluster.before_call = look
        await world.run_for(60.0)
        assert seen == world.cluster.scale_writes

    play(scenario)


def test_recommend_mode_is_ready_with_what_others_requested() -> None:
    """It cannot add what minReplicas lacks: one replica that serves is not down."""

    async def scenario(world: World) -> None:
        world.create(scaling={"mode": "Recommend", "minReplicas": 1})
        await world.run_for(20.0)
        world.edit(scaling={"mode": "Recommend", "minReplicas": 3})
        await world.run_for(20.0)
        assert world.replicas() == 1
        assert world.status()["decision"]["replicas"] == 3
        assert world.condition("Ready") == ("True", "Serving")

    play(scenario)


def test_recommend_mode_writes_children_and_no_replicas() -> None:
    async def scenario(world: World) -> None:
        world.create(scaling={"mode": "Recommend"})
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(90.0)
        assert world.replicas() == 1
        assert world.cluster.scale_writes == []
        assert world.status()["decision"]["replicas"] >= 4
        assert world.condition("ScalingActive") == ("False", "RecommendOnly")

    play(scenario)


def changed_before(world: World, verb: str, change: Callable[[Manifest], Any], times: int) -> None:
    """Let another client change the Deployment just before our next calls of a verb."""
    follow, left = world.cluster.before_call, iter(range(times))

    def race(called: str, kind: str) -> None:
        follow(called, kind)
        deployment = world.cluster.find("Deployment", "resnet")
        if called == verb and deployment and next(left, None) is not None:
            world.cluster.update(deployment, change)

    world.cluster.before_call = race


def annotate(one: Manifest) -> None:
    annotations = one["metadata"].setdefault("annotations", {})
    annotations["changed"] = str(int(annotations.get("changed", "0")) + 1)


def slow_down(one: Manifest) -> None:
    one["spec"]["minReadySeconds"] = one["spec"].get("minReadySeconds", 0) + 1


def test_write_conflict_over_the_spec_is_decided_again_at_once() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(20.0)
        changed_before(world, "apply_scale", slow_down, times=2)
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(40.0)
        refused = [n for n, outcome in enumerate(world.recorder.outcomes) if outcome == "Conflict"]
        assert len(refused) == 2
        assert refused[1] == refused[0] + 1
        assert world.replicas() >= 4
        assert world.condition("AbleToScale")[0] == "True"

    play(scenario)


@pytest.mark.parametrize(
    ("verb", "times"),
    [("list_all", 10_000), ("apply_scale", 3)],
    ids=["while pods are read, always", "between read and write, thrice"],
)
def test_changes_of_status_or_metadata_hold_no_scale_up_back(verb: str, times: int) -> None:
    """Replicas that flap give their Deployment a new status several times in a tick."""

    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(20.0)
        changed_before(world, verb, annotate, times)
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(12.0)
        assert "Conflict" not in world.recorder.outcomes
        assert world.replicas() >= 4

    play(scenario)


def test_new_spec_is_applied_while_the_status_keeps_changing() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(0.1)
        changed_before(world, "list_all", annotate, 10_000)
        await world.run_for(20.0)
        world.edit(runtime={"image": "registry.example/server:2"})
        await world.run_for(10.0)
        deployment = world.cluster.find("Deployment", "resnet")
        assert deployment is not None
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        assert container["image"] == "registry.example/server:2"
        assert world.condition("Ready")[0] == "True"

    play(scenario)


def test_manual_scale_during_a_tick_wins() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(20.0)
        follow = world.cluster.before_call
        raced: list[str] = []

        def race(verb: str, kind: str) -> None:
            follow(verb, kind)
            deployment = world.cluster.find("Deployment", "resnet")
            if verb == "apply_scale" and deployment and not raced:
                raced.append(verb)
                world.cluster.update(deployment, lambda one: one["spec"].update(replicas=9))

        world.cluster.before_call = race
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(12.0)
        assert raced
        assert world.replicas() == 9

    play(scenario)


def test_forbidden_scale_write_is_reported_and_retried() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(20.0)
        world.cluster.fail("apply_scale", "Deployment", Forbidden("no patch on scale"), times=3)
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(14.0)
        assert world.cluster.events("ScaleFailed")
        await world.run_for(20.0)
        assert world.condition("AbleToScale")[0] == "True"
        assert world.replicas() >= 4

    play(scenario)


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (Unavailable("500: failed calling webhook"), "ScalingActive", "EvaluationFailed"),
        (Forbidden("no patch on scale"), "AbleToScale", "ScaleFailed"),
    ],
    ids=["no answer", "refused"],
)
def test_scale_write_that_keeps_failing_is_reported_throughout(
    error: ClusterError, kind: str, said: str
) -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(60.0)
        world.cluster.fail("apply_scale", "Deployment", error, times=9999)
        world.pods.arrivals_rps["resnet"] = 6 * REPLICA_RPS
        await world.run_for(20.0)
        follow, seen = world.cluster.before_call, set[str]()

        def look(verb: str, of: str) -> None:
            follow(verb, of)
            seen.add(world.condition(kind)[1])

        world.cluster.before_call = look
        world.cluster.calls.clear()
        await world.run_for(300.0)
        assert seen == {said}
        assert len([one for one in world.cluster.calls if one[0] == "apply_status"]) <= 15
        world.cluster.stop_failing()
        await world.run_for(30.0)
        assert world.condition(kind)[0] == "True"
        assert world.replicas() >= 6

    play(scenario)


def test_refused_number_is_sent_again_at_growing_intervals_and_another_one_at_once() -> None:
    async def scenario(world: World) -> None:
        world.create(scaling={"minReplicas": 2})
        await world.run_for(60.0)
        world.cluster.fail("apply_scale", "Deployment", Forbidden("policy: 2 at most"), times=9999)
        world.edit(scaling={"minReplicas": 5})
        world.cluster.calls.clear()
        await world.run_for(600.0)
        assert 15 <= len(sent(world)) <= 60  # every tick would be 300
        world.cluster.calls.clear()
        world.edit(scaling={"minReplicas": 4})
        await world.run_for(6.0)
        assert sent(world)

    play(scenario)


def sent(world: World) -> list[object]:
    return [one for one in world.cluster.calls if one[0] == "apply_scale"]


def test_rollout_does_not_overwrite_replicas() -> None:
    """A human scales between the read and the apply of a new image, which answers with both."""

    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(20.0)
        follow = world.cluster.before_call
        raced: list[str] = []

        def race(verb: str, kind: str) -> None:
            follow(verb, kind)
            deployment = world.cluster.find("Deployment", "resnet")
            if (verb, kind) == ("dry_run", "Deployment") and deployment and not raced:
                raced.append(verb)
                world.cluster.update(deployment, lambda one: one["spec"].update(replicas=9))

        world.cluster.before_call = race
        world.edit(runtime={"image": "registry.example/server:2"}, scaling={"minReplicas": 3})
        await world.run_for(12.0)
        assert raced
        assert world.cluster.scale_writes == []
        assert world.replicas() == 9

    play(scenario)


def test_quota_rejection_differs_from_unschedulable() -> None:
    async def scenario(world: World) -> None:
        world.create(scaling={"minReplicas": 2})
        world.pods.refused = "exceeded quota: gpus"
        await world.run_for(20.0)
        assert world.condition("CapacityAvailable") == ("False", "PodCreationForbidden")
        assert world.condition("Ready") == ("False", "PodCreationForbidden")
        assert "exceeded quota: gpus" in world.message("Ready")

    play(scenario)


def test_unschedulable_replicas_are_reported_and_not_multiplied() -> None:
    async def scenario(world: World) -> None:
        world.create()
        world.pods.capacity = 2
        world.pods.arrivals_rps["resnet"] = 7.5 * REPLICA_RPS
        await world.run_for(600.0)
        assert world.status()["readyReplicas"] == 2
        assert world.status()["unschedulableReplicas"] == world.replicas() - 2
        assert world.condition("CapacityAvailable") == ("False", "ReplicasUnschedulable")
        assert len(world.cluster.scale_writes) <= 2

    play(scenario)


@pytest.mark.parametrize("requested", [{}, {"replicas": 1}], ids=["Auto", "External"])
def test_schedule_raises_min_replicas_while_active(requested: dict[str, Any]) -> None:
    """It begins within three minutes, and ends three minutes later."""

    async def scenario(world: World) -> None:
        minute = int(world.clock.now_s() // 60) + 3
        start, end = minute % 60, (minute + 3) % 60
        floor = {"name": "soon", "start": f"{start} * * * *", "end": f"{end} * * * *"}
        world.create(
            scaling={
                "mode": "External" if requested else "Auto",
                "schedules": [floor | {"minReplicas": 4}],
                "scaleDown": {"stabilizationWindow": "30s"},
            },
            **requested,
        )
        await world.run_for(60.0)
        assert world.replicas() == 1
        await world.run_for(130.0)
        assert world.replicas() == 4
        assert "schedule soon requires at least" in world.status()["decision"]["message"]
        await world.run_for(300.0)
        assert world.replicas() == 1

    play(scenario)
