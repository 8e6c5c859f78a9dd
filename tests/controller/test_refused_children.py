"""A Service, PodDisruptionBudget or ServiceAccount in trouble: said, and nothing else stops."""

from __future__ import annotations

import pytest

from headroom.errors import ClusterError, Conflict, Forbidden, Unavailable
from support.cluster_world import Manifest, rejected
from support.controller_world import REPLICA_RPS, World, play

KINDS = ["Service", "PodDisruptionBudget", "ServiceAccount"]
TROUBLES = [
    Forbidden("exceeded quota: services=0"),
    rejected("spec: Invalid value"),
    Unavailable("failed calling webhook: connection refused"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", TROUBLES, ids=lambda error: type(error).__name__)
def test_rejected_child_stops_neither_creation_nor_scaling(kind: str, error: ClusterError) -> None:
    async def scenario(world: World) -> None:
        world.cluster.fail("create", kind, error, times=999)
        world.create()
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(90.0)
        assert world.replicas() >= 4
        assert world.condition("Ready") == ("False", "ApplyFailed")
        assert str(error) in world.message("Ready")
        assert world.condition("AbleToScale")[0] == "True"
        assert world.cluster.find(kind, "resnet") is None
        for other in (other for other in KINDS if other != kind):
            assert world.cluster.find(other, "resnet")
        world.cluster.stop_failing()
        await world.run_for(35.0)
        assert world.cluster.find(kind, "resnet")
        assert world.condition("Ready") == ("True", "Serving")

    play(scenario)


@pytest.mark.parametrize("verb", ["get", "apply"])
@pytest.mark.parametrize(
    ("error", "times", "ready"),
    [
        (Unavailable("429", retry_after_s=1.0), 40, "True"),
        (Conflict("the object has been modified"), 40, "True"),
        (Unavailable("503"), 1, "True"),
        (Unavailable("503"), 40, "False"),
    ],
    ids=["throttled", "another writer", "once", "for minutes"],
)
def test_passing_trouble_of_a_child_is_no_failure_of_the_service(
    verb: str, error: ClusterError, times: int, ready: str
) -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(60.0)
        budget = world.cluster.find("PodDisruptionBudget", "resnet")
        assert budget
        world.cluster.update(budget, lambda one: one["spec"].update(maxUnavailable="99%"))
        world.cluster.fail(verb, "PodDisruptionBudget", error, times=times)
        seen = set()
        for _ in range(45):
            await world.run_for(1.0)
            seen.add(world.condition("Ready")[0])
        assert ready in seen
        assert (seen == {"True"}) is (ready == "True")
        world.cluster.stop_failing()
        await world.run_for(10.0)
        assert world.condition("Ready") == ("True", "Serving")
        assert budget["spec"]["maxUnavailable"] != "99%", "it was tried again soon"

    play(scenario)


@pytest.mark.parametrize("kind", KINDS)
def test_child_rejected_once_is_written_soon(kind: str) -> None:
    async def scenario(world: World) -> None:
        world.cluster.fail("create", kind, Forbidden("no rights yet"), times=1)
        world.create()
        await world.run_for(9.0)
        assert world.cluster.find(kind, "resnet")

    play(scenario)


def foreign(world: World, kind: str) -> Manifest:
    metadata = {"name": "resnet", "namespace": "default"}
    return world.cluster.put({"kind": kind, "metadata": metadata, "spec": {}})


def test_pods_get_no_foreign_account_by_the_choice_of_a_name() -> None:
    """Policies admit a service's own ServiceAccount; one of its name may be an administrator's."""

    async def scenario(world: World) -> None:
        foreign(world, "ServiceAccount")
        world.create()
        await world.run_for(30.0)
        assert world.cluster.find("Deployment", "resnet") is None
        assert world.condition("Ready") == ("False", "ApplyFailed")
        assert "give the InferenceService another name" in world.message("Ready")
        world.cluster.delete("ServiceAccount", "resnet")
        await world.run_for(90.0)
        assert world.condition("Ready") == ("True", "Serving")

    play(scenario)


@pytest.mark.parametrize("error", TROUBLES, ids=lambda error: type(error).__name__)
def test_foreign_account_is_seen_where_creations_are_refused_without_a_look(
    error: ClusterError,
) -> None:
    """A quota and a webhook answer before the API server looks whether the object exists."""

    async def scenario(world: World) -> None:
        foreign(world, "ServiceAccount")
        world.cluster.fail("create", "ServiceAccount", error, times=9999)
        world.create()
        await world.run_for(30.0)
        assert world.cluster.find("Deployment", "resnet") is None
        assert world.condition("Ready") == ("False", "ApplyFailed")

    play(scenario)


def test_deployment_under_a_foreign_account_is_scaled_and_not_changed() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(60.0)
        world.cluster.delete("ServiceAccount", "resnet")
        foreign(world, "ServiceAccount")
        world.edit(runtime={"image": "another"})
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(90.0)
        assert world.replicas() >= 4
        assert "another" not in str(world.cluster.find("Deployment", "resnet"))
        assert world.condition("Ready") == ("False", "ApplyFailed")

    play(scenario)


def test_foreign_account_that_the_pods_do_not_get_is_left_alone() -> None:
    async def scenario(world: World) -> None:
        foreign(world, "ServiceAccount")
        pod = {"spec": {"serviceAccountName": "theirs"}}
        world.create(runtime={"image": "one", "podTemplate": pod})
        await world.run_for(30.0)
        assert world.cluster.find("Deployment", "resnet")

    play(scenario)


@pytest.mark.parametrize("kind", ["Service", "PodDisruptionBudget"])
def test_foreign_child_is_left_alone(kind: str) -> None:
    async def scenario(world: World) -> None:
        theirs = foreign(world, kind)
        world.create()
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(90.0)
        assert world.replicas() >= 4
        assert theirs["spec"] == {}
        assert world.condition("Ready") == ("False", "ApplyFailed")
        assert "not controlled by this InferenceService" in world.message("Ready")

    play(scenario)


def test_rejected_child_is_retried_less_and_less_often() -> None:
    async def scenario(world: World) -> None:
        world.cluster.fail("create", "Service", Forbidden("exceeded quota"), times=9999)
        world.create()
        await world.run_for(61.0)
        in_the_first_minute = world.cluster.calls.count(("create", "Service"))
        assert 10 <= in_the_first_minute <= 16, "every other tick"
        await world.run_for(1000.0)
        before = world.cluster.calls.count(("create", "Service"))
        await world.run_for(300.0)
        assert 4 <= world.cluster.calls.count(("create", "Service")) - before <= 6, "each minute"

    play(scenario)


@pytest.mark.parametrize("error", TROUBLES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("verb", ["dry_run", "apply"])
def test_refused_update_of_the_deployment_stops_no_scaling(verb: str, error: ClusterError) -> None:
    """A webhook is down, or a policy is new, and the operator has restarted."""

    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(60.0)
        world.cluster.fail(verb, "Deployment", error, times=9999)
        await world.restart_operator()
        world.pods.arrivals_rps["resnet"] = 6 * REPLICA_RPS
        await world.run_for(60.0)
        assert world.replicas() >= 6
        assert world.condition("Ready") == ("False", "ApplyFailed"), "the spec was in order"
        assert str(error) in world.message("Ready")
        assert world.condition("AbleToScale")[0] == "True"
        assert world.condition("ScalingActive") == ("True", "Auto")
        await world.restart_operator()
        await world.run_for(20.0)
        assert world.condition("Ready") == ("False", "ApplyFailed")
        world.cluster.stop_failing()
        await world.run_for(65.0)
        assert world.condition("Ready") == ("True", "Serving")

    play(scenario)


def test_new_service_whose_deployment_is_invalid_has_one_trouble() -> None:
    async def scenario(world: World) -> None:
        world.cluster.fail("dry_run", "Deployment", rejected("readinessProbe: invalid"), times=9999)
        world.create()
        await world.run_for(10.0)
        for kind in ("Ready", "ScalingActive", "AbleToScale"):
            assert world.condition(kind) == ("False", "InvalidSpec"), kind
        assert not world.cluster.events("ScaleFailed")

    play(scenario)


def test_spec_whose_deployment_is_invalid_is_reported_and_what_runs_is_scaled() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(60.0)
        world.cluster.fail("dry_run", "Deployment", rejected("readinessProbe: invalid"), times=9999)
        world.edit(runtime={"image": "registry.example/server:2"})
        world.pods.arrivals_rps["resnet"] = 6 * REPLICA_RPS
        await world.run_for(60.0)
        assert world.replicas() >= 6
        assert world.condition("Ready") == ("False", "InvalidSpec")
        assert world.condition("AbleToScale")[0] == "True"

    play(scenario)


@pytest.mark.parametrize(
    "first",
    [Unavailable("failed calling webhook: connection refused"), Forbidden("exceeded quota")],
    ids=lambda error: type(error).__name__,
)
def test_spec_is_reported_as_invalid_also_if_its_first_dry_run_said_nothing_about_it(
    first: ClusterError,
) -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(60.0)
        world.cluster.fail("dry_run", "Deployment", first, times=2)
        world.cluster.fail("dry_run", "Deployment", rejected("readinessProbe: invalid"), times=9999)
        world.edit(runtime={"image": "registry.example/server:2"})
        await world.run_for(3.0)
        assert world.condition("Ready") == ("False", "ApplyFailed")
        assert str(first) in world.message("Ready")
        await world.run_for(30.0)
        assert world.condition("Ready") == ("False", "InvalidSpec")
        assert "readinessProbe: invalid" in world.message("Ready")
        world.cluster.stop_failing()
        await world.run_for(65.0)
        assert world.condition("Ready") == ("True", "Serving")

    play(scenario)


def test_refused_deployment_and_refused_scale_are_both_reported() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(60.0)
        for verb in ("apply", "apply_scale"):
            world.cluster.fail(verb, "Deployment", Forbidden(f"no {verb}"), times=9999)
        await world.restart_operator()
        world.pods.arrivals_rps["resnet"] = 6 * REPLICA_RPS
        await world.run_for(60.0)
        assert "no apply;" in world.message("Ready")
        assert world.condition("AbleToScale") == ("False", "ScaleFailed")
        assert "no apply_scale" in world.message("AbleToScale")

    play(scenario)


def test_refusals_that_are_too_long_for_a_status_are_reported() -> None:
    """A policy refuses each object in a kilobyte of words."""

    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(60.0)
        for verb, kind in [*(("get", kind) for kind in KINDS), ("apply", "Deployment")]:
            world.cluster.fail(verb, kind, rejected(1024 * "x"), times=9999)
        await world.restart_operator()
        world.pods.arrivals_rps["resnet"] = 6 * REPLICA_RPS
        await world.run_for(60.0)
        assert world.replicas() >= 6
        assert world.condition("Ready") == ("False", "ApplyFailed")
        assert world.message("Ready").endswith(
            "x...; fix what is rejected; it is retried within a minute"
        )
        assert set(world.recorder.outcomes) == {"ok"}

    play(scenario)
