"""Children that `kubectl delete --cascade=orphan` kept, and the next service of the name."""

from __future__ import annotations

from typing import Any

import pytest

from support.controller_world import REPLICA_RPS, World, play

CHILDREN = ["Deployment", "Service", "PodDisruptionBudget", "ServiceAccount"]


async def orphaned(world: World) -> dict[str, str]:
    """Run a service that scales, and delete it without its children; give their UIDs."""
    world.create()
    world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
    await world.run_for(90.0)
    assert world.replicas() >= 4
    world.cluster.delete("InferenceService", "resnet", orphan=True)
    await world.run_for(10.0)
    return {kind: found(world, kind)["metadata"]["uid"] for kind in CHILDREN}


def found(world: World, kind: str) -> dict[str, Any]:
    child = world.cluster.find(kind, "resnet")
    assert child is not None
    return child


def owners(world: World, kind: str) -> list[str]:
    return [one["uid"] for one in found(world, kind)["metadata"]["ownerReferences"]]


def test_orphaned_children_are_adopted_with_their_replicas() -> None:
    async def scenario(world: World) -> None:
        uids = await orphaned(world)
        before, generation = world.replicas(), found(world, "Deployment")["metadata"]["generation"]
        world.create()
        await world.run_for(60.0)
        uid = found(world, "InferenceService")["metadata"]["uid"]
        for kind in CHILDREN:
            assert found(world, kind)["metadata"]["uid"] == uids[kind]
            assert owners(world, kind) == [uid]
        assert world.replicas() == before
        assert found(world, "Deployment")["metadata"]["generation"] == generation, "no rollout"
        assert world.condition("Ready") == ("True", "Serving")
        assert len(world.cluster.events("Adopted")) == 1
        world.pods.arrivals_rps["resnet"] = 7 * REPLICA_RPS
        await world.run_for(60.0)
        assert world.replicas() >= 7, "and scaled"

    play(scenario)


def test_orphan_that_was_not_handed_over_yet_is_adopted() -> None:
    """The controller of PodDisruptionBudgets writes between creation and handover."""

    async def scenario(world: World) -> None:
        await orphaned(world)
        created: dict[str, Any] = {"f:spec": {"f:maxUnavailable": {}, "f:selector": {}}}
        by_us = {"manager": "headroom-scaler", "operation": "Update", "fieldsV1": created}
        budget = found(world, "PodDisruptionBudget")
        world.cluster.update(budget, lambda one: one["metadata"].update(managedFields=[by_us]))
        world.create()
        await world.run_for(60.0)
        assert world.condition("Ready") == ("True", "Serving")
        assert len(owners(world, "PodDisruptionBudget")) == 1

    play(scenario)


def test_adoption_with_another_spec_is_a_rollout_and_said_once() -> None:
    async def scenario(world: World) -> None:
        uids = await orphaned(world)
        world.create(runtime={"image": "registry.example/server:2"})
        await world.run_for(60.0)
        deployment = found(world, "Deployment")
        assert deployment["metadata"]["uid"] == uids["Deployment"]
        server = deployment["spec"]["template"]["spec"]["containers"][0]
        assert server["image"] == "registry.example/server:2"
        assert len(world.cluster.events("Adopted")) == 1

    play(scenario)


def _another_controller(metadata: dict[str, Any]) -> None:
    metadata["ownerReferences"] = [
        {"apiVersion": "x/v1", "kind": "X", "name": "x", "uid": "x", "controller": True}
    ]


def _applied_by_another(metadata: dict[str, Any]) -> None:
    metadata["managedFields"] = [{"manager": "kubectl", "operation": "Apply", "fieldsV1": {}}]


def _without_label(metadata: dict[str, Any]) -> None:
    metadata["labels"] = {"app.kubernetes.io/managed-by": "headroom"}


@pytest.mark.parametrize(
    "change",
    [_another_controller, _applied_by_another, _without_label],
    ids=lambda one: one.__name__,
)
def test_what_may_be_anothers_is_left_alone(change: Any) -> None:
    async def scenario(world: World) -> None:
        await orphaned(world)
        deployment = found(world, "Deployment")
        world.cluster.update(deployment, lambda one: change(one["metadata"]))
        before = dict(deployment["metadata"])
        world.create()
        await world.run_for(60.0)
        assert world.condition("Ready") == ("False", "ApplyFailed")
        assert "is not controlled by this InferenceService" in world.message("Ready")
        assert found(world, "Deployment")["metadata"] == before

    play(scenario)


def test_service_that_is_being_deleted_adopts_nothing() -> None:
    """The watch may be late: the operator does not know of the deletion, which orphans children."""

    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(60.0)
        service = found(world, "InferenceService")
        world.cluster.on_change = lambda *_: None
        service["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        for kind in CHILDREN:
            world.cluster.update(
                found(world, kind), lambda one: one["metadata"].pop("ownerReferences")
            )
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(3.0)
        for kind in CHILDREN:
            assert "ownerReferences" not in found(world, kind)["metadata"]

    play(scenario)


def test_children_of_an_earlier_service_are_said_to_be_going() -> None:
    async def scenario(world: World) -> None:
        await orphaned(world)
        earlier = {"apiVersion": "headroom.dev/v1alpha1", "kind": "InferenceService"}
        earlier |= {"name": "resnet", "uid": "gone"}
        owner = earlier | {"controller": True}
        world.cluster.update(
            found(world, "Deployment"), lambda one: one["metadata"].update(ownerReferences=[owner])
        )
        world.create()
        await world.run_for(10.0)
        assert "belongs to an earlier InferenceService" in world.message("Ready")

    play(scenario)
