"""Other clients that scale the same workload are noticed and reported with the remedy."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.controller.gather.other_writers import autoscalers
from headroom.errors import Forbidden, NamespaceTerminating, Unavailable
from support.cluster_world import Manifest
from support.controller_world import REPLICA_RPS, World, play

SCALING = {"scaleDown": {"stabilizationWindow": "30s"}}


def autoscaler(target: str, kind: str = "Deployment", by: Manifest | None = None) -> Manifest:
    group = "headroom.dev/v1alpha1" if kind == "InferenceService" else "apps/v1"
    reference = {"apiVersion": group, "kind": kind, "name": target}
    metadata: dict[str, Any] = {"name": f"{target}-hpa", "namespace": "default"}
    if by is not None:
        metadata["ownerReferences"] = [by]
    spec = {"scaleTargetRef": reference}
    return {"kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


KEDA = {"kind": "ScaledObject", "name": "llm", "uid": "k", "controller": True}


@pytest.mark.parametrize("target", ["", "own"])
@pytest.mark.parametrize(
    ("by", "named"), [(None, "HorizontalPodAutoscaler"), (KEDA, "ScaledObject llm")]
)
def test_hpa_on_the_workload_stops_writes(target: str, by: Manifest | None, named: str) -> None:
    async def scenario(world: World) -> None:
        workload = target or "resnet"
        world.cluster.put(autoscaler(workload, by=by))
        if target:
            world.create_workload(target)
        world.create(target=target)
        world.pods.arrivals_rps[workload] = 4 * REPLICA_RPS
        await world.run_for(90.0)
        assert world.replicas(workload) == 1
        assert world.cluster.scale_writes == []
        assert world.condition("Ready") == ("True", "Serving")
        for kind in ("ScalingActive", "AbleToScale"):
            assert world.condition(kind) == ("False", "AutoscalerConflict"), kind
        assert named in world.message("AbleToScale")
        assert "delete it" in world.message("AbleToScale")
        assert len(world.cluster.events("AutoscalerConflict")) == 1
        world.cluster.delete("HorizontalPodAutoscaler", f"{workload}-hpa")
        await world.run_for(14.0)
        assert world.condition("AbleToScale")[0] == "True"
        await world.run_for(76.0)
        assert world.replicas(workload) >= 4

    play(scenario)


def test_service_is_ready_with_the_replicas_of_an_hpa_below_min_replicas() -> None:
    async def scenario(world: World) -> None:
        world.create()
        world.cluster.put(autoscaler("resnet"))
        await world.run_for(90.0)
        world.edit(scaling={"minReplicas": 3})
        await world.run_for(10.0)
        assert world.replicas() == 1
        assert world.condition("AbleToScale") == ("False", "AutoscalerConflict")
        assert world.condition("Ready") == ("True", "Serving")
        assert world.message("Ready").startswith("1 of 1 replicas are ready")

    play(scenario)


def test_hpa_is_noticed_at_the_first_ticks_of_a_new_service() -> None:
    async def scenario(world: World) -> None:
        world.create("older")
        await world.run_for(10.0)  # the HPAs of the namespace are listed, for a minute
        world.cluster.put(autoscaler("newer"))
        world.create("newer")
        await world.run_for(6.0)
        assert world.condition("AbleToScale", "newer") == ("False", "AutoscalerConflict")

    play(scenario)


@pytest.mark.parametrize(
    ("listed_s", "created_s", "after_s", "due"),
    [
        (100.0, 50.0, 59.9, False),
        (100.0, 50.0, 60.0, True),
        (100.0, 150.0, 1.9, False),
        (100.0, 150.0, 2.0, True),
        (100.0, 99.0, 2.0, True),  # within the skew of the clocks
        (100.0, 50.0, -1.0, True),
    ],
)
def test_hpas_are_listed_each_minute_and_for_each_new_service(
    listed_s: float, created_s: float, after_s: float, due: bool
) -> None:
    assert autoscalers.is_due(listed_s, listed_s + after_s, created_s) is due


@pytest.mark.parametrize(
    ("mode", "on", "condition"),
    [
        ("Recommend", ("resnet", "Deployment"), ("True", "NothingToScale")),
        ("External", ("resnet", "InferenceService"), ("True", "NothingToScale")),
        ("External", ("resnet", "Deployment"), ("False", "AutoscalerConflict")),
        ("Auto", ("other", "Deployment"), ("True", "NothingToScale")),
        ("Auto", ("resnet", "StatefulSet"), ("True", "NothingToScale")),
    ],
)
def test_hpa_is_a_conflict_only_on_the_same_target(
    mode: str, on: tuple[str, str], condition: tuple[str, str]
) -> None:
    async def scenario(world: World) -> None:
        world.cluster.put(autoscaler(*on))
        requested: dict[str, Any] = {"replicas": 1} if mode == "External" else {}
        world.create(scaling={"mode": mode}, **requested)
        await world.run_for(30.0)
        assert world.condition("AbleToScale") == condition

    play(scenario)


def test_hpas_are_listed_once_a_minute_per_namespace() -> None:
    async def scenario(world: World) -> None:
        for name in ("one", "two", "three"):
            world.create(name)
        await world.run_for(300.0)
        assert 5 <= world.cluster.calls.count(("list_all", "HorizontalPodAutoscaler")) <= 6

    play(scenario)


def test_forbidden_hpa_list_stops_no_scaling(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        world.cluster.fail("list_all", "HorizontalPodAutoscaler", Forbidden("no list"), times=9)
        world.create()
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(200.0)
        assert world.replicas() >= 4

    play(scenario)
    assert caplog.text.count("HPAs in default cannot be listed: no list") == 1


def test_known_hpas_survive_an_api_outage() -> None:
    async def scenario(world: World) -> None:
        world.cluster.put(autoscaler("resnet"))
        world.create()
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(30.0)
        world.cluster.fail("list_all", "HorizontalPodAutoscaler", Unavailable("down"), times=99)
        await world.run_for(600.0)
        assert world.replicas() == 1

    play(scenario)


def test_younger_service_on_a_target_waits_for_the_older() -> None:
    async def scenario(world: World) -> None:
        world.create_workload("own")
        world.create("older", target="own")
        await world.run_for(20.0)
        world.create("younger", target="own", scaling={"minReplicas": 7})
        await world.run_for(60.0)
        assert world.replicas("own") == 1
        assert world.condition("AbleToScale", "older")[0] == "True"
        for kind in ("ScalingActive", "AbleToScale"):
            assert world.condition(kind, "younger") == ("False", "TargetAlreadyManaged"), kind
        assert "InferenceService older" in world.message("AbleToScale", "younger")
        world.cluster.delete("InferenceService", "older")
        await world.run_for(20.0)
        assert world.replicas("own") == 7

    play(scenario)


def test_manual_scale_is_kept_for_a_hold_and_named() -> None:
    async def scenario(world: World) -> None:
        world.create(scaling=SCALING)
        await world.run_for(60.0)
        deployment = world.cluster.find("Deployment", "resnet")
        assert deployment
        world.cluster.write_replicas(deployment, 4, "kubectl")
        await world.run_for(20.0)
        assert world.replicas() == 4
        assert world.condition("AbleToScale") == ("True", "ReplicasOverwritten")
        said = world.message("AbleToScale")
        assert "kubectl changed the replicas from 1 to 4" in said
        assert "scaling.minReplicas" in said
        await world.run_for(120.0)
        assert world.replicas() == 1
        assert world.condition("AbleToScale") == ("True", "NothingToScale")

    play(scenario)


@pytest.mark.parametrize("by", ["minimum", "client"])
def test_manual_scale_is_no_longer_named_once_the_numbers_agree(by: str) -> None:
    async def scenario(world: World) -> None:
        world.create(scaling=SCALING)
        await world.run_for(60.0)
        deployment = world.cluster.find("Deployment", "resnet")
        assert deployment
        world.cluster.write_replicas(deployment, 4, "kubectl")
        await world.run_for(6.0)
        assert world.condition("AbleToScale") == ("True", "ReplicasOverwritten")
        if by == "minimum":
            world.edit(scaling={"minReplicas": 4})  # as the message says
        else:
            world.cluster.write_replicas(deployment, 1, "kubectl")
        await world.run_for(60.0)
        assert world.replicas() == (4 if by == "minimum" else 1)
        assert world.condition("AbleToScale") == ("True", "NothingToScale")

    play(scenario)


def test_replicas_that_a_new_hpa_has_written_are_not_overwritten() -> None:
    """The HPAs of a namespace are listed once a minute, and decisions change more often."""

    async def scenario(world: World) -> None:
        world.create(scaling=SCALING)
        await world.run_for(60.0)
        deployment = world.cluster.find("Deployment", "resnet")
        assert deployment
        world.cluster.put(autoscaler("resnet"))
        world.cluster.write_replicas(deployment, 2, "kube-controller-manager")
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(40.0)
        assert world.replicas() == 2
        assert world.condition("AbleToScale") == ("False", "AutoscalerConflict")

    play(scenario)


def test_tool_that_resets_replicas_causes_a_pause() -> None:
    """Argo CD with self-heal: whatever is written is 1 again within three seconds."""

    async def scenario(world: World) -> None:
        world.create_workload("own")
        world.create(target="own", scaling=SCALING)
        await world.run_for(20.0)
        world.pods.arrivals_rps["own"] = 4 * REPLICA_RPS
        for _ in range(340):
            await world.run_for(3.0)
            deployment = world.cluster.find("Deployment", "own")
            assert deployment
            if deployment["spec"]["replicas"] != 1:
                world.cluster.write_replicas(deployment, 1, "argocd-controller")
        # Three at once, then after 5, 10 and, not yet over, 20 minutes; the first is followed
        # by a larger one before it is reset.
        assert len(world.cluster.scale_writes) == 6
        for kind in ("ScalingActive", "AbleToScale"):
            assert world.condition(kind) == ("False", "ReplicasRepeatedlyOverwritten"), kind
        said = world.message("AbleToScale")
        assert "argocd-controller keeps overwriting the replicas" in said
        assert "ignoreDifferences" in said
        assert "none are written before" in said
        await world.run_for(1300.0)
        assert world.replicas("own") >= 4
        assert world.condition("AbleToScale")[0] == "True"

    play(scenario)


@pytest.mark.parametrize("target", ["", "own"])
def test_manual_scale_to_zero_disables_scaling(target: str) -> None:
    async def scenario(world: World) -> None:
        if target:
            world.create_workload(target)
        world.create(target=target)
        await world.run_for(20.0)
        deployment = world.cluster.find("Deployment", target or "resnet")
        assert deployment
        world.cluster.write_replicas(deployment, 0, "kubectl")
        await world.run_for(300.0)
        assert world.replicas(target or "resnet") == 0
        assert world.condition("AbleToScale") == ("False", "ScalingDisabled")
        assert world.message("Ready").endswith("; see AbleToScale")
        await world.restart_operator()
        await world.run_for(60.0)
        assert world.replicas(target or "resnet") == 0
        world.cluster.write_replicas(deployment, 2, "kubectl")
        await world.run_for(20.0)
        assert world.replicas(target or "resnet") == 2
        assert world.condition("AbleToScale")[0] == "True"

    play(scenario)


def test_paused_workload_is_scaled_and_reported() -> None:
    async def scenario(world: World) -> None:
        world.create_workload("own", paused=True)
        world.create(target="own", scaling={"minReplicas": 2})
        await world.run_for(30.0)
        assert world.replicas("own") == 2
        assert world.condition("AbleToScale") == ("True", "WorkloadPaused")
        assert "kubectl rollout resume" in world.message("AbleToScale")

    play(scenario)


def test_rollout_is_reported_and_removes_nothing() -> None:
    async def scenario(world: World) -> None:
        deployment = world.create_workload("own", replicas=4)
        world.create(target="own", scaling=SCALING)
        world.pods.rolling.add("own")
        await world.run_for(300.0)
        assert world.replicas("own") == 4
        assert world.condition("AbleToScale") == ("True", "RollingOut")
        world.pods.rolling.clear()
        await world.run_for(300.0)
        assert deployment["spec"]["replicas"] == 1

    play(scenario)


def test_terminating_namespace_is_reported() -> None:
    async def scenario(world: World) -> None:
        error = NamespaceTerminating("namespace default is being terminated")
        world.cluster.fail("create", "ServiceAccount", error, times=99)
        world.create()
        await world.run_for(10.0)
        assert world.condition("Ready") == ("False", "NamespaceTerminating")

    play(scenario)
