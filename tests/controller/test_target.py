"""A workload that exists, scaled and otherwise left alone; External mode; switches of the mode."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.errors import Forbidden, Unavailable, UnknownKind
from support.controller_world import REPLICA_RPS, World, play

SCALING = {"scaleDown": {"stabilizationWindow": "60s"}}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Group"])
def test_target_is_scaled_and_nothing_else_is_written(kind: str) -> None:
    async def scenario(world: World) -> None:
        world.create_workload("own", kind)
        world.create(target="own", kind=kind, scaling=SCALING)
        await world.run_for(20.0)
        world.pods.arrivals_rps["own"] = 4 * REPLICA_RPS
        await world.run_for(60.0)
        assert 4 <= world.replicas("own", kind) <= 6
        assert world.status()["readyReplicas"] == world.replicas("own", kind)
        assert world.status()["selector"] == "headroom.dev/inference-service=own"
        world.pods.arrivals_rps["own"] = 0.0
        await world.run_for(400.0)
        assert world.replicas("own", kind) == 1
        assert set(world.cluster.writes()) == {
            ("apply_scale", kind),
            ("apply_status", "InferenceService"),
            ("create", "Event"),
        }

    play(scenario)


def test_deleted_service_leaves_its_target() -> None:
    async def scenario(world: World) -> None:
        world.create_workload("own", replicas=2)
        world.create(target="own", scaling={"minReplicas": 3})
        await world.run_for(30.0)
        world.cluster.delete("InferenceService", "resnet")
        await world.run_for(60.0)
        assert world.replicas("own") == 3

    play(scenario)


def test_missing_target_is_named_and_found_later() -> None:
    async def scenario(world: World) -> None:
        world.create(target="own")
        await world.run_for(20.0)
        for kind in ("Ready", "ScalingActive", "AbleToScale"):
            assert world.condition(kind) == ("False", "TargetNotFound"), kind
        assert "Deployment default/own" in world.message("Ready")
        assert "create it" in world.message("Ready")
        assert world.condition("SLOMet") == ("Unknown", "TargetNotFound")
        assert world.message("SLOMet") == "not known without a target; see Ready"
        assert {call[0] for call in world.cluster.writes()} == {"apply_status", "create"}
        world.create_workload("own", replicas=2)
        await world.run_for(30.0)
        assert world.condition("Ready") == ("True", "Serving")
        assert world.replicas("own") == 2
        world.cluster.delete("Deployment", "own")
        await world.run_for(10.0)
        assert world.condition("AbleToScale") == ("False", "TargetNotFound")

    play(scenario)


def test_target_of_a_kind_that_does_not_exist_is_to_be_corrected_and_not_created() -> None:
    async def scenario(world: World) -> None:
        unknown = UnknownKind("the API server has no namespaced kind Deploymnet in apps/v1")
        world.cluster.fail("get", "Deploymnet", unknown, times=1000)
        world.create(target="own", kind="Deploymnet")
        await world.run_for(20.0)
        for kind in ("Ready", "ScalingActive", "AbleToScale"):
            assert world.condition(kind) == ("False", "TargetNotFound"), kind
        said = world.message("Ready")
        assert "no namespaced kind Deploymnet in apps/v1; correct spec.targetRef.kind" in said
        assert "delete the InferenceService, which removes no workload" in said
        assert "create it" not in said

    play(scenario)


def test_missing_target_of_another_group_names_the_usual_one() -> None:
    async def scenario(world: World) -> None:
        service = world.create(target="own")
        world.cluster.update(service, in_another_group)
        await world.run_for(20.0)
        assert "(Kubernetes' own Deployment has apiVersion apps/v1)" in world.message("Ready")

    play(scenario)


def in_another_group(service: dict[str, Any]) -> None:
    service["spec"]["targetRef"]["apiVersion"] = "app/v1"


def test_figures_of_a_service_without_decisions_are_removed_and_its_trouble_is_shown() -> None:
    async def scenario(world: World) -> None:
        recorder = world.recorder
        world.create_workload("own", replicas=2)
        world.create(target="own", scaling={"minReplicas": 2})
        await world.run_for(30.0)
        assert recorder.holds == []
        assert "TargetNotFound" not in recorder.troubles["default/resnet"]
        world.cluster.delete("Deployment", "own")
        await world.run_for(10.0)
        assert set(recorder.holds) == {"default/resnet"}
        assert recorder.troubles["default/resnet"] == {"TargetNotFound"}
        decisions = len(recorder.decisions)
        world.create_workload("own", replicas=2)
        await world.run_for(30.0)
        assert len(recorder.decisions) > decisions
        assert "TargetNotFound" not in recorder.troubles["default/resnet"]

    play(scenario)


def test_failed_tick_keeps_the_figures_of_the_last_decision() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(30.0)
        world.cluster.fail("get", "Deployment", Unavailable("503"), times=2)
        await world.run_for(3.0)
        assert world.recorder.troubles["default/resnet"] == {"EvaluationFailed"}
        assert world.recorder.holds == []

    play(scenario)


def test_forbidden_target_names_the_permission() -> None:
    async def scenario(world: World) -> None:
        world.create_workload("own", "Group")
        world.cluster.fail("get_scale", "Group", Forbidden("cannot get groups/scale"), times=4)
        world.create(target="own", kind="Group")
        await world.run_for(4.0)
        assert world.condition("AbleToScale") == ("False", "TargetForbidden")
        assert "grant the operator get on the kind" in world.message("AbleToScale")
        await world.run_for(30.0)
        assert world.condition("Ready") == ("True", "Serving")

    play(scenario)


def test_target_without_selector_is_not_scaled() -> None:
    async def scenario(world: World) -> None:
        workload = world.create_workload("own", "Group")
        workload["scale"] = {}
        world.create(target="own", kind="Group")
        await world.run_for(10.0)
        assert world.condition("AbleToScale") == ("False", "TargetNotScalable")
        assert "no status.selector" in world.message("AbleToScale")

    play(scenario)


def test_target_on_the_host_network_is_not_scraped() -> None:
    async def scenario(world: World) -> None:
        world.create_workload("own")
        world.create(target="own")
        await world.run_for(20.0)
        world.pods.ready("own")[0]["spec"] = {"hostNetwork": True}
        await world.run_for(15.0)
        assert world.condition("MetricsAvailable") == ("False", "MetricsStale")
        assert "host network" in world.message("MetricsAvailable")

    play(scenario)


def test_foreign_pod_with_the_targets_labels_is_not_scraped() -> None:
    async def scenario(world: World) -> None:
        world.create_workload("own")
        world.create(target="own")
        await world.run_for(20.0)
        impostor = world.pods.ready("own")[0]
        impostor["metadata"]["ownerReferences"] = []
        await world.run_for(4.0)
        assert world.status()["readyReplicas"] == 0

    play(scenario)


def test_target_is_adopted_under_load_without_change() -> None:
    async def scenario(world: World) -> None:
        world.create_workload("own", replicas=6)
        world.pods.arrivals_rps["own"] = 4 * REPLICA_RPS
        await world.run_for(20.0)
        world.create(target="own", scaling=SCALING)
        await world.run_for(45.0)
        assert world.cluster.scale_writes == []
        assert world.condition("AbleToScale") == ("True", "NothingToScale")

    play(scenario)


def test_external_follows_spec_replicas_and_advises() -> None:
    async def scenario(world: World) -> None:
        world.create(scaling={"mode": "External"}, replicas=2)
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(60.0)
        assert world.replicas() == 2
        assert world.status()["decision"]["replicas"] >= 4
        assert world.condition("ScalingActive") == ("False", "ExternallyScaled")
        world.edit(scaling={"mode": "External"}, replicas=5)
        await world.run_for(5.0)
        assert world.replicas() == 5
        assert "2 -> 5, spec.replicas is 5" in world.cluster.events("ScaledUp")[0]["note"]
        world.edit(scaling={"mode": "External"}, replicas=1)
        await world.run_for(5.0)
        assert world.replicas() == 1
        assert world.cluster.events("ScaledDown")

    play(scenario)


@pytest.mark.parametrize("target", ["", "own"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Auto", "External"),
        ("External", "Auto"),
        ("Recommend", "Auto"),
        ("Auto", "Recommend"),
        ("Recommend", "External"),
        ("External", "Recommend"),
    ],
)
def test_mode_switch_changes_no_replicas(before: str, after: str, target: str) -> None:
    """Idle for longer than the hold, so that Auto would go to one at once."""

    async def scenario(world: World) -> None:
        if target:
            world.create_workload(target, replicas=4)

        def spec(mode: str) -> dict[str, Any]:
            scaling = {"mode": mode, "scaleDown": {"stabilizationWindow": "3m"}}
            requested = {"replicas": 4} if mode == "External" else {}
            return {"target": target, "scaling": scaling, **requested}

        world.create(status={"decision": {"replicas": 4, "current": 4}}, **spec(before))
        await world.run_for(175.0)
        assert world.replicas(target or "resnet") == 4
        writes = list(world.cluster.scale_writes)
        world.edit(**spec(after))
        await world.run_for(90.0)
        assert world.replicas(target or "resnet") == 4
        assert world.cluster.scale_writes == writes

    play(scenario)
