"""The controller from the outside, told as stories on virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from controller_world import World, play, rejected
from headroom.errors import Conflict, Forbidden, Unavailable

LABEL = "headroom.dev/inference-service"
CAPACITY_RPS = 9.0
"""One replica of the world's servers, at its ceiling."""


def test_a_new_service_gets_its_children_and_becomes_ready_when_warm() -> None:
    async def story(world: World) -> None:
        world.create()
        await world.run_for(4.0)
        for kind in ("ServiceAccount", "Service", "PodDisruptionBudget", "Deployment"):
            assert world.cluster.find(kind, "resnet"), kind
        assert world.replicas() == 1
        assert world.condition("Ready") == ("False", "WarmingUp")
        await world.run_for(12.0)
        assert world.condition("Ready") == ("True", "Serving")
        assert world.condition("MetricsAvailable") == ("True", "SignalsFresh")
        assert world.status()["observedGeneration"] == 1
        assert [event["reason"] for event in world.cluster.events()] == ["Created", "Ready"]

    play(story)


def test_load_scales_up_and_its_end_scales_down_to_the_minimum() -> None:
    async def story(world: World) -> None:
        world.create(scaling={"scaleDown": {"stabilizationWindow": "60s"}})
        await world.run_for(20.0)
        world.pods.arrivals_rps["resnet"] = 4 * CAPACITY_RPS
        await world.run_for(60.0)
        peak = world.replicas()
        assert 4 <= peak <= 10
        assert world.cluster.events("ScaledUp")
        world.pods.arrivals_rps["resnet"] = 0.0
        await world.run_for(400.0)
        assert world.replicas() == 1
        assert world.cluster.events("ScaledDown")
        assert set(world.cluster.scale_writes) >= {peak, 1}

    play(story)


def test_a_quiet_service_is_read_often_and_written_once_a_minute() -> None:
    async def story(world: World) -> None:
        world.create()
        await world.run_for(30.0)
        world.cluster.calls.clear()
        await world.run_for(120.0)
        assert world.cluster.calls.count(("get", "Deployment")) >= 55
        assert world.cluster.writes() == [("apply_status", "InferenceService")] * 2

    play(story)


def test_history_is_written_before_the_act_that_it_explains() -> None:
    async def story(world: World) -> None:
        world.create()
        await world.run_for(20.0)
        world.pods.arrivals_rps["resnet"] = 4 * CAPACITY_RPS
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

    play(story)


@pytest.mark.parametrize("kind", ["Service", "PodDisruptionBudget", "ServiceAccount"])
def test_a_deleted_child_comes_back(kind: str) -> None:
    async def story(world: World) -> None:
        world.create()
        await world.run_for(10.0)
        world.cluster.delete(kind, "resnet")
        await world.run_for(35.0)
        assert world.cluster.find(kind, "resnet")

    play(story)


def test_drift_is_repaired_and_what_others_added_stays() -> None:
    async def story(world: World) -> None:
        world.create()
        await world.run_for(10.0)
        service = world.cluster.find("Service", "resnet")
        deployment = world.cluster.find("Deployment", "resnet")
        assert service
        assert deployment
        world.cluster.update(service, lambda one: one["spec"].update(selector={LABEL: "other"}))
        world.cluster.update(
            deployment, lambda one: one["metadata"].update(annotations={"note": "theirs"})
        )
        world.cluster.update(
            deployment, lambda one: one["spec"]["strategy"].update(type="Recreate")
        )
        await world.run_for(35.0)
        assert service["spec"]["selector"] == {LABEL: "resnet"}
        assert deployment["spec"]["strategy"]["type"] == "RollingUpdate"
        assert deployment["metadata"]["annotations"] == {"note": "theirs"}

    play(story)


def test_a_deployment_deleted_under_load_comes_back_with_the_replicas_that_were_decided() -> None:
    async def story(world: World) -> None:
        world.create()
        world.pods.arrivals_rps["resnet"] = 4 * CAPACITY_RPS
        await world.run_for(90.0)
        decided = world.status()["decision"]["replicas"]
        assert decided >= 4
        world.cluster.delete("Deployment", "resnet")
        await world.run_for(4.0)
        assert world.replicas() >= decided

    play(story)


def test_what_was_created_is_handed_over_to_the_manager_that_applies() -> None:
    async def story(world: World) -> None:
        world.cluster.fail("json_patch", "Deployment", Unavailable("lost"))
        world.create()
        await world.run_for(6.0)
        deployment = world.cluster.find("Deployment", "resnet")
        assert deployment
        owners = {
            (entry["manager"], entry["operation"]): entry["fieldsV1"]
            for entry in deployment["metadata"]["managedFields"]
        }
        assert owners == {
            ("headroom", "Apply"): {"f:spec": {"f:template": {}}},
            ("headroom-scaler", "Update"): {"f:spec": {"f:replicas": {}}},
        }

    play(story)


def test_recommend_writes_children_and_no_replicas() -> None:
    async def story(world: World) -> None:
        world.create(scaling={"mode": "Recommend"})
        world.pods.arrivals_rps["resnet"] = 4 * CAPACITY_RPS
        await world.run_for(90.0)
        assert world.replicas() == 1
        assert world.cluster.scale_writes == []
        assert world.status()["decision"]["replicas"] >= 4
        assert world.condition("ScalingActive") == ("False", "RecommendOnly")

    play(story)


def test_a_conflict_is_decided_again_at_once_and_never_repeated_blindly() -> None:
    async def story(world: World) -> None:
        world.create()
        await world.run_for(20.0)
        world.cluster.fail("apply_scale", "Deployment", Conflict("modified"), times=2)
        world.pods.arrivals_rps["resnet"] = 4 * CAPACITY_RPS
        await world.run_for(40.0)
        refused = [n for n, outcome in enumerate(world.recorder.outcomes) if outcome == "Conflict"]
        assert len(refused) == 2
        assert refused[1] == refused[0] + 1
        assert world.replicas() >= 4
        assert world.condition("AbleToScale")[0] == "True"

    play(story)


def test_a_human_who_scales_in_between_wins_that_race() -> None:
    async def story(world: World) -> None:
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
        world.pods.arrivals_rps["resnet"] = 4 * CAPACITY_RPS
        await world.run_for(12.0)
        assert raced
        assert world.replicas() == 9

    play(story)


def test_pods_that_fall_silent_hold_what_stands() -> None:
    async def story(world: World) -> None:
        world.create(scaling={"scaleDown": {"stabilizationWindow": "60s"}})
        world.pods.arrivals_rps["resnet"] = 4 * CAPACITY_RPS
        await world.run_for(90.0)
        standing = world.replicas()
        world.pods.silent = True
        await world.run_for(1200.0)
        assert world.replicas() == standing
        assert world.condition("MetricsAvailable") == ("False", "SignalsAbsent")
        assert world.condition("ScalingActive") == ("False", "SignalsAbsent")
        assert len(world.cluster.events("MetricsUnavailable")) == 1

    play(story)


def test_a_restart_changes_no_replicas_and_remembers_what_was_learnt() -> None:
    async def story(world: World) -> None:
        world.create(scaling={"scaleDown": {"stabilizationWindow": "120s"}})
        world.pods.arrivals_rps["resnet"] = 4 * CAPACITY_RPS
        await world.run_for(90.0)
        standing, writes = world.replicas(), len(world.cluster.scale_writes)
        world.pods.arrivals_rps["resnet"] = 0.0
        await world.restart_operator()
        await world.run_for(100.0)
        assert world.replicas() == standing
        assert len(world.cluster.scale_writes) == writes
        assert world.status()["coldStart"]["p90"]
        await world.run_for(200.0)
        assert world.replicas() < standing

    play(story)


def test_a_checkpoint_that_cannot_be_read_is_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(world: World) -> None:
        world.create(status={"checkpoint": '{"version": 99}'})
        await world.run_for(20.0)
        assert world.condition("Ready") == ("True", "Serving")

    play(story)
    assert "starting without memory" in caplog.text


def test_an_invalid_spec_that_got_in_holds_everything() -> None:
    async def story(world: World) -> None:
        world.create()
        world.pods.arrivals_rps["resnet"] = 4 * CAPACITY_RPS
        await world.run_for(90.0)
        standing = world.replicas()
        world.edit(scaling={"minReplicas": 7, "maxReplicas": 2})
        world.pods.arrivals_rps["resnet"] = 0.0
        world.cluster.calls.clear()
        await world.run_for(600.0)
        assert world.replicas() == standing
        assert world.condition("Ready") == ("False", "InvalidSpec")
        assert world.condition("ScalingActive") == ("False", "InvalidSpec")
        assert set(world.cluster.writes()) == {
            ("apply_status", "InferenceService"),
            ("create", "Event"),
        }
        assert world.status()["checkpoint"]
        world.edit()
        await world.run_for(10.0)
        assert world.condition("Ready") == ("True", "Serving")

    play(story)


def test_a_pod_template_that_the_api_server_refuses_holds_everything() -> None:
    async def story(world: World) -> None:
        world.cluster.fail("dry_run", "Deployment", rejected("spec.template: Invalid"), times=99)
        world.create()
        await world.run_for(30.0)
        assert world.condition("Ready") == ("False", "InvalidSpec")
        assert world.cluster.find("Deployment", "resnet") is None
        assert world.cluster.calls.count(("dry_run", "Deployment")) == 1, "asked once a minute"
        world.cluster.stop_failing()
        await world.run_for(60.0)
        assert world.cluster.find("Deployment", "resnet")

    play(story)


def test_a_deployment_that_a_quota_forbids_is_asked_for_once_a_minute() -> None:
    async def story(world: World) -> None:
        world.cluster.fail("dry_run", "Deployment", Forbidden("exceeded quota"), times=99)
        world.create()
        await world.run_for(30.0)
        assert world.condition("Ready") == ("False", "ApplyFailed")
        assert world.cluster.calls.count(("dry_run", "Deployment")) == 1
        world.cluster.stop_failing()
        await world.run_for(40.0)
        assert world.cluster.find("Deployment", "resnet")

    play(story)


def test_the_log_names_a_service_whose_tick_failed(caplog: pytest.LogCaptureFixture) -> None:
    async def story(world: World) -> None:
        world.create()
        world.cluster.fail("list_all", "Pod", Forbidden("no list on pods"))
        await world.run_for(5.0)

    play(story)
    assert "default/resnet: tick failed: Forbidden: no list on pods" in caplog.text


def test_a_forbidden_scale_write_is_said_and_tried_again() -> None:
    async def story(world: World) -> None:
        world.create()
        await world.run_for(20.0)
        world.cluster.fail("apply_scale", "Deployment", Forbidden("no patch on scale"), times=3)
        world.pods.arrivals_rps["resnet"] = 4 * CAPACITY_RPS
        await world.run_for(14.0)
        assert world.cluster.events("ScalingBlocked")
        await world.run_for(20.0)
        assert world.condition("AbleToScale")[0] == "True"
        assert world.replicas() >= 4

    play(story)


def test_an_object_of_the_same_name_is_never_taken_over() -> None:
    async def story(world: World) -> None:
        theirs = world.cluster.put(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "resnet", "namespace": "default"},
                "spec": {"replicas": 3},
            }
        )
        world.create()
        await world.run_for(60.0)
        assert theirs["spec"] == {"replicas": 3}
        assert world.condition("Ready") == ("False", "ApplyFailed")

    play(story)


def test_an_object_of_the_same_name_is_not_blamed_on_the_spec() -> None:
    """A selector is immutable, so that a dry run over somebody's Deployment is refused for it."""

    async def story(world: World) -> None:
        world.cluster.fail("dry_run", "Deployment", rejected("field is immutable"), times=99)
        world.cluster.put(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "resnet", "namespace": "default"},
                "spec": {"replicas": 3},
            }
        )
        world.create()
        await world.run_for(20.0)
        assert world.condition("Ready") == ("False", "ApplyFailed")
        assert "not controlled by this InferenceService" in world.message("Ready")

    play(story)


def test_replicas_that_stand_since_the_decision_are_not_overwritten_by_a_rollout() -> None:
    """A human scales between the read and the apply of a new image, which answers with both."""

    async def story(world: World) -> None:
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

    play(story)


def test_pods_that_a_quota_refuses_are_told_from_pods_without_a_node() -> None:
    async def story(world: World) -> None:
        world.create(scaling={"minReplicas": 2})
        world.pods.refused = "exceeded quota: gpus"
        await world.run_for(20.0)
        assert world.condition("CapacityAvailable") == ("False", "ReplicasRefused")
        assert world.condition("Ready") == ("False", "ReplicasRefused")
        assert "exceeded quota: gpus" in world.message("Ready")

    play(story)


def test_a_tick_that_breaks_off_is_said_with_its_own_reason() -> None:
    async def story(world: World) -> None:
        world.create()
        await world.run_for(20.0)
        world.cluster.fail("list_all", "Pod", Forbidden("no list on pods"), times=2)
        await world.run_for(3.0)
        assert world.condition("ScalingActive") == ("Unknown", "EvaluationFailed")
        assert "no list on pods" in world.message("ScalingActive")
        await world.run_for(10.0)
        assert world.condition("ScalingActive") == ("True", "Auto")

    play(story)


def test_a_start_of_the_operator_is_no_failure_of_metrics() -> None:
    async def story(world: World) -> None:
        world.create()
        await world.run_for(60.0)
        assert world.condition("SLOMet") == ("Unknown", "NoTraffic")
        await world.restart_operator()
        await world.run_for(4.0)
        for kind in ("MetricsAvailable", "ScalingActive", "SLOMet"):
            assert world.condition(kind) == ("Unknown", "WindowFilling"), kind
        await world.run_for(15.0)
        assert world.condition("MetricsAvailable") == ("True", "SignalsFresh")
        assert world.cluster.events("MetricsUnavailable") == []

    play(story)


def test_a_ready_pod_without_an_address_is_named() -> None:
    async def story(world: World) -> None:
        world.create()
        await world.run_for(20.0)
        world.pods.ready("resnet")[0]["status"].pop("podIP")
        await world.run_for(15.0)
        assert world.condition("MetricsAvailable") == ("False", "SignalsStale")
        assert "no podIP yet" in world.message("MetricsAvailable")

    play(story)


def test_replicas_without_a_node_are_reported_and_not_multiplied() -> None:
    async def story(world: World) -> None:
        world.create()
        world.pods.capacity = 2
        world.pods.arrivals_rps["resnet"] = 8 * CAPACITY_RPS
        await world.run_for(600.0)
        assert world.status()["readyReplicas"] == 2
        assert world.status()["unschedulableReplicas"] == world.replicas() - 2
        assert world.condition("CapacityAvailable") == ("False", "ReplicasUnschedulable")
        assert len(world.cluster.scale_writes) <= 2

    play(story)


def test_one_poisoned_service_stops_no_other() -> None:
    async def story(world: World) -> None:
        poisoned = world.create("poisoned")
        poisoned["metadata"]["generation"] = "not a number"
        world.create("healthy")
        await world.run_for(60.0)
        assert world.condition("Ready", "healthy") == ("True", "Serving")

    play(story)


def test_an_api_that_is_down_for_minutes_is_survived() -> None:
    async def story(world: World) -> None:
        world.create()
        await world.run_for(20.0)
        world.cluster.fail("get", "Deployment", Unavailable("down", retry_after_s=1.0), times=8)
        await world.run_for(300.0)
        assert world.recorder.outcomes.count("Unavailable") == 8
        assert world.recorder.outcomes[-1] == "ok"
        assert world.condition("ScalingActive") == ("True", "Auto")

    play(story)


def test_a_deleted_service_is_forgotten_also_where_no_event_said_so() -> None:
    async def story(world: World) -> None:
        world.create("told")
        world.create("untold")
        await world.run_for(20.0)
        world.cluster.delete("InferenceService", "told")
        world.watching = False
        world.cluster.delete("InferenceService", "untold")
        await world.run_for(70.0)
        assert world.recorder.gone == ["default/told", "default/untold"]
        world.cluster.calls.clear()
        await world.run_for(30.0)
        assert ("get", "Deployment") not in world.cluster.calls

    play(story)


def test_a_service_made_anew_under_the_name_starts_without_the_old_memory() -> None:
    async def story(world: World) -> None:
        first = world.create()
        world.pods.arrivals_rps["resnet"] = 4 * CAPACITY_RPS
        await world.run_for(90.0)
        world.cluster.delete("InferenceService", "resnet")
        world.pods.arrivals_rps["resnet"] = 0.0
        second = world.create()
        await world.run_for(20.0)
        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        assert world.replicas() == 1
        assert world.recorder.gone == ["default/resnet"]

    play(story)


WRITES_OF_A_LIFE = 14


@pytest.mark.parametrize("taken", [False, True], ids=["before it", "after it"])
@pytest.mark.parametrize("nth", range(WRITES_OF_A_LIFE))
def test_a_crash_around_any_write_ends_in_the_same_place(nth: int, taken: bool) -> None:
    """The process dies at its nth write, before or after the API server took it."""

    async def story(world: World) -> None:
        world.pods.arrivals_rps["resnet"] = 4 * CAPACITY_RPS
        follow = world.cluster.before_call
        writes = 0
        dead: list[str] = []

        def crash(verb: str, kind: str) -> None:
            nonlocal writes
            follow(verb, kind)
            if verb not in ("get", "list_all"):
                writes += 1
            if dead or (writes == nth + 1 and not taken):
                dead.append(verb)
                raise Unavailable("the process is gone")
            if writes == nth + 1:
                dead.append("at the next call")

        world.cluster.before_call = crash
        world.create()
        while not dead:
            await world.run_for(0.1)
        await world.run_for(0.1)
        world.cluster.before_call = follow
        await world.restart_operator()
        await world.run_for(60.0)
        assert world.condition("Ready") == ("True", "Serving")
        assert 4 <= world.replicas() <= 6
        deployment = world.cluster.find("Deployment", "resnet")
        assert deployment
        managers = [one["manager"] for one in deployment["metadata"]["managedFields"]]
        assert sorted(managers) == ["headroom", "headroom-scaler"]

    play(story)
