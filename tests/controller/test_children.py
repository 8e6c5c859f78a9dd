"""Children of a service: created, repaired, handed over, never taken from another owner."""

from __future__ import annotations

import pytest

from headroom.errors import Forbidden, Unavailable
from support.cluster_world import rejected
from support.controller_world import REPLICA_RPS, World, play

LABEL = "headroom.dev/inference-service"


def test_new_service_gets_children_and_becomes_ready() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(4.0)
        for kind in ("ServiceAccount", "Service", "PodDisruptionBudget", "Deployment"):
            assert world.cluster.find(kind, "resnet"), kind
        assert world.replicas() == 1
        assert world.condition("Ready") == ("False", "WarmingUp")
        await world.run_for(12.0)
        assert world.condition("Ready") == ("True", "Serving")
        assert world.condition("MetricsAvailable") == ("True", "MetricsFresh")
        assert world.status()["observedGeneration"] == 1
        assert [event["reason"] for event in world.cluster.events()] == ["Created", "Serving"]

    play(scenario)


def test_new_service_costs_few_requests() -> None:
    """Two hundred services that are created together wait for the API server alone."""

    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(1.0)
        about = ("ServiceAccount", "Service", "PodDisruptionBudget", "Deployment", "Pod")
        assert [call for call in world.cluster.calls if call[1] in about] == [
            ("get", "Deployment"),
            ("dry_run", "Deployment"),
            ("create", "ServiceAccount"),
            ("create", "Service"),
            ("create", "PodDisruptionBudget"),
            ("create", "Deployment"),
        ]
        await world.run_for(40.0)
        patched = [kind for verb, kind in world.cluster.calls if verb == "json_patch"]
        assert patched == ["Deployment", "ServiceAccount", "Service", "PodDisruptionBudget"]
        assert "apply" not in {verb for verb, _ in world.cluster.calls}

    play(scenario)


def test_created_child_is_handed_over_before_it_is_repaired() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(10.0)
        service = world.cluster.find("Service", "resnet")
        assert service
        world.cluster.update(service, lambda one: one["spec"].update(selector={LABEL: "other"}))
        await world.run_for(35.0)
        calls = [verb for verb, kind in world.cluster.calls if kind == "Service"]
        assert [one for one in calls if one != "get"] == ["create", "json_patch", "apply"]
        assert service["spec"]["selector"] == {LABEL: "resnet"}

    play(scenario)


@pytest.mark.parametrize("kind", ["Service", "PodDisruptionBudget", "ServiceAccount"])
def test_deleted_child_is_recreated(kind: str) -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(10.0)
        world.cluster.delete(kind, "resnet")
        await world.run_for(35.0)
        assert world.cluster.find(kind, "resnet")

    play(scenario)


def test_drift_is_repaired_and_foreign_fields_are_kept() -> None:
    async def scenario(world: World) -> None:
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

    play(scenario)


def test_deployment_that_another_client_keeps_overwriting_is_left_for_a_while() -> None:
    """Each repair is a rollout: without a pause the two of them replace a pod every 2 s."""

    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(10.0)
        await world.restart_operator()
        await world.run_for(10.0)
        deployment = world.cluster.find("Deployment", "resnet")
        assert deployment
        deployment["metadata"]["managedFields"].append(
            {
                "manager": "kyverno",
                "operation": "Update",
                "time": "2027-01-15T08:00:00Z",
                "fieldsV1": {"f:spec": {"f:strategy": {}}},
            }
        )
        calls = world.cluster.before_call

        def overwrite(verb: str, kind: str) -> None:
            world.cluster.update(deployment, lambda one: one["spec"]["strategy"].update(type="X"))
            calls(verb, kind)

        async def applies_within(seconds: float) -> int:
            before = world.cluster.calls.count(("apply", "Deployment"))
            await world.run_for(seconds)
            return world.cluster.calls.count(("apply", "Deployment")) - before

        world.cluster.before_call = overwrite
        assert await applies_within(60.0) == 2
        assert world.condition("Ready") == ("False", "DeploymentRepeatedlyOverwritten")
        assert world.message("Ready").startswith("kyverno keeps overwriting Deployment default/")
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        assert await applies_within(90.0) == 0
        assert world.replicas() >= 4, "scaling goes on"
        world.cluster.before_call = calls
        world.edit(drain={"gracePeriod": "7s"})
        assert await applies_within(10.0) == 1, "a new spec is applied at once"
        assert deployment["spec"]["strategy"]["type"] == "RollingUpdate"
        assert world.condition("Ready") == ("True", "Serving")

    play(scenario)


def test_deployment_deleted_under_load_returns_with_decided_replicas() -> None:
    async def scenario(world: World) -> None:
        world.create()
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(90.0)
        decided = world.status()["decision"]["replicas"]
        assert decided >= 4
        world.cluster.delete("Deployment", "resnet")
        await world.run_for(4.0)
        assert world.replicas() >= decided

    play(scenario)


def test_created_object_is_handed_over_to_the_applier() -> None:
    async def scenario(world: World) -> None:
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

    play(scenario)


def test_rejected_pod_template_holds_everything() -> None:
    async def scenario(world: World) -> None:
        world.cluster.fail("dry_run", "Deployment", rejected("spec.template: Invalid"), times=99)
        world.create()
        await world.run_for(30.0)
        assert world.condition("Ready") == ("False", "InvalidSpec")
        assert world.cluster.find("Deployment", "resnet") is None
        world.cluster.stop_failing()
        await world.run_for(8.0)
        assert world.cluster.find("Deployment", "resnet")

    play(scenario)


def test_deployment_over_quota_is_retried_less_and_less_often() -> None:
    async def scenario(world: World) -> None:
        world.cluster.fail("dry_run", "Deployment", Forbidden("exceeded quota"), times=999)
        world.create()
        await world.run_for(60.0)
        assert world.condition("Ready") == ("False", "ApplyFailed")
        assert 10 <= world.cluster.calls.count(("dry_run", "Deployment")) <= 16
        await world.run_for(900.0)
        world.cluster.calls.clear()
        await world.run_for(600.0)
        assert world.cluster.calls.count(("dry_run", "Deployment")) <= 11, "once a minute"
        world.cluster.stop_failing()
        await world.run_for(65.0)
        assert world.cluster.find("Deployment", "resnet")

    play(scenario)


def test_foreign_object_of_the_same_name_is_never_adopted() -> None:
    async def scenario(world: World) -> None:
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

    play(scenario)


def test_foreign_object_of_the_same_name_is_no_invalid_spec() -> None:
    """A selector is immutable, so a dry run over another owner's Deployment is refused."""

    async def scenario(world: World) -> None:
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

    play(scenario)
