"""A change of the pod template: said as an event, with its place and without its value."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.controller.act.template_change import described
from support.controller_world import World, play

SERVER = "spec.containers[server]"


def deployment(**server: Any) -> dict[str, Any]:
    container = {"name": "server", "image": "a", "env": [{"name": "A", "value": "1"}], **server}
    return {"spec": {"template": {"metadata": {}, "spec": {"containers": [container]}}}}


@pytest.mark.parametrize(
    ("after", "places"),
    [
        ({}, ""),
        ({"image": "b"}, "spec.containers[server].image"),
        ({"env": [{"name": "A", "value": "2"}]}, "spec.containers[server].env[A].value"),
        ({"env": []}, "spec.containers[server].env[A]"),
        (
            {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "secret"}]},
            "spec.containers[server].env[B]",
        ),
        ({"args": ["--fast"]}, "spec.containers[server].args"),
        (
            {"image": "b", "args": ["-x"], "command": ["y"], "tty": True, "stdin": True},
            f"{SERVER}.args, {SERVER}.command, {SERVER}.image and 2 more",
        ),
    ],
)
def test_places_of_a_change_are_named_without_values(after: dict[str, Any], places: str) -> None:
    assert described(deployment(), deployment(**after)) == places


def test_change_of_the_template_is_an_event_and_a_change_of_replicas_is_none() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(60.0)
        world.edit(scaling={"minReplicas": 3})
        await world.run_for(30.0)
        assert not world.cluster.events("RollingOut")
        world.edit(runtime={"image": "registry.example/server:2"}, scaling={"minReplicas": 3})
        await world.run_for(30.0)
        (event,) = world.cluster.events("RollingOut")
        assert "spec.containers[server].image" in event["note"]
        await world.restart_operator()
        await world.run_for(60.0)
        assert len(world.cluster.events("RollingOut")) == 1

    play(scenario)


def test_undone_change_of_the_template_names_its_writer_and_where_to_make_it() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(60.0)
        deployment = world.cluster.find("Deployment", "resnet")
        assert deployment
        deployment["metadata"]["managedFields"].append(
            {
                "manager": "kubectl-rollout",
                "operation": "Update",
                "time": "2027-01-15T08:00:00Z",
                "fieldsV1": {"f:spec": {"f:template": {}}},
            }
        )
        world.cluster.update(
            deployment,
            lambda one: one["spec"]["template"]["spec"]["containers"][0].update(image="older:1"),
        )
        await world.run_for(30.0)
        (event,) = world.cluster.events("RollingOut")
        assert event["note"].startswith(f"kubectl-rollout changed {SERVER}.image of the pod")
        assert "reset to what the InferenceService says" in event["note"]
        assert event["type"] == "Warning"
        world.edit(runtime={"image": "registry.example/server:2"})
        await world.run_for(30.0)
        (_, own) = world.cluster.events("RollingOut")
        assert own["type"] == "Normal"

    play(scenario)


def test_rollout_says_how_far_it_is() -> None:
    async def scenario(world: World) -> None:
        world.create(scaling={"minReplicas": 3})
        await world.run_for(60.0)
        world.pods.rolling.add("resnet")
        await world.run_for(30.0)
        assert world.condition("AbleToScale") == ("True", "RollingOut")
        assert "2 of 3 have the latest template" in world.message("AbleToScale")

    play(scenario)


def test_rollout_that_does_not_go_on_says_where_the_cause_is() -> None:
    async def scenario(world: World) -> None:
        world.create(scaling={"minReplicas": 3})
        await world.run_for(60.0)
        world.pods.rolling.add("resnet")
        world.pods.refused = "exceeded quota"
        await world.run_for(40.0)
        assert "see CapacityAvailable" in world.message("AbleToScale")
        assert "exceeded quota" in world.message("CapacityAvailable")

    play(scenario)
