"""Texts of conditions where another client scales, and of a service without replicas."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.api import InferenceService
from headroom.api.reasons import StatusReason
from headroom.controller.decide.scaling_conflicts import overridden
from headroom.controller.gather.gateways.route_status import RouteStatus
from headroom.controller.report.conditions.next_steps import steps_of
from headroom.controller.scheduling.overwrite_backoff import OverwriteBackoff
from support.controller_world import REPLICA_RPS, SilentRouter, World, play

GATEWAY = {"mode": "Gateway"}
EXTERNAL = {"mode": "External", "minReplicas": 0}
SLOWLY = {"scaleUp": {"rate": {"period": "10m", "replicas": 1}}}
ADVICE = ("the first request starts", "decisions are made and written", "replicas are added")


class Routes(SilentRouter):
    """A router that only says how requests reach the services."""

    def __init__(self, route: RouteStatus | None = None) -> None:
        self._route = route or RouteStatus(gateways=("10.0.0.1",), activators=2)

    def route_status(self, service: InferenceService) -> RouteStatus:
        return self._route


def world_after(
    routes: Routes, scaling: dict[str, Any], requested_replicas: list[int | None]
) -> World:
    """A service that has followed each of these numbers for two minutes; no load at the end."""
    played: list[World] = []

    async def scenario(world: World) -> None:
        played.append(world)
        for number, requested in enumerate(requested_replicas):
            spec: dict[str, Any] = {"routing": GATEWAY, "scaling": scaling}
            if requested is not None:
                spec["replicas"] = requested
            world.pods.arrivals_rps["resnet"] = 0.0 if requested == 0 else REPLICA_RPS
            if number:
                world.edit(**spec)
            else:
                world.create(**spec)
            await world.run_for(120.0)

    play(scenario, routes)
    return played[0]


@pytest.mark.parametrize(
    ("route", "ready", "metrics"),
    [
        (
            RouteStatus(gateways=("10.0.0.1",), activators=2),
            "spec.replicas is 0; until it is raised requests are held",
            "while no replica runs, requests are counted at the activators",
        ),
        (
            RouteStatus(gateways=("10.0.0.1",), activators=2, held=3),
            "0 of 0 replicas are ready, 3 requests are held; raise spec.replicas to start one",
            "while no replica runs, requests are counted at the activators",
        ),
        (
            RouteStatus(gateways=("10.0.0.1",)),
            (
                "0 of 0 replicas are ready, no activator holds requests; raise spec.replicas to "
                "start one"
            ),
            "no replica is ready, so there are no metrics; see Ready",
        ),
    ],
    ids=["idle", "requests wait", "no activator"],
)
def test_service_that_another_autoscaler_has_at_zero(
    route: RouteStatus, ready: str, metrics: str
) -> None:
    world = world_after(Routes(route), EXTERNAL, [1, 0])
    assert world.replicas() == 0
    assert world.message("Ready") == ready
    assert world.message("MetricsAvailable") == metrics
    said = " ".join(one["message"] for one in world.status()["conditions"])
    assert not [words for words in ADVICE if words in said]
    assert "the last replica is kept" not in said


def test_limit_of_spec_replicas_is_named_and_not_that_of_the_decision() -> None:
    world = world_after(Routes(), EXTERNAL | SLOWLY, [2, 5])
    assert world.replicas() == 3
    assert world.condition("ScalingLimited") == ("True", "RateLimited")
    assert world.message("ScalingLimited").startswith("spec.replicas is 5, 3 allowed now; wait")
    assert "on the way to spec.replicas (5)" in world.message("AbleToScale")


def test_limit_of_the_decision_limits_nothing_where_it_is_advice() -> None:
    routes = Routes()

    async def scenario(world: World) -> None:
        world.create(routing=GATEWAY, scaling=EXTERNAL | {"maxReplicas": 2}, replicas=2)
        world.pods.arrivals_rps["resnet"] = 8 * REPLICA_RPS
        await world.run_for(120.0)
        assert world.status()["decision"]["replicas"] == 2
        assert world.condition("ScalingLimited") == ("False", "WithinBounds")
        assert world.message("ScalingLimited") == "no limit reduces spec.replicas"

    play(scenario, routes)


def test_recommended_replicas_are_not_said_to_be_there() -> None:
    async def scenario(world: World) -> None:
        world.create(scaling={"mode": "Recommend"})
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(60.0)
        assert world.status()["decision"]["replicas"] > world.replicas()
        assert "is Recommend" in world.message("AbleToScale")

    play(scenario)


@pytest.mark.parametrize(("least", "said"), [(0, "one replica serves"), (1, "minReplicas (1)")])
def test_minimum_of_zero_is_not_called_one(least: int, said: str) -> None:
    world = world_after(Routes(), {"minReplicas": least}, [None])
    assert said in world.message("SLOFeasible")


@pytest.mark.parametrize(
    ("mode", "by", "said"),
    [
        ("Auto", "kubectl-scale", "is kept until the decision changes: to fix a number"),
        ("External", "kubectl-scale", "scale the InferenceService instead of the workload"),
        ("External", "kube-controller-manager", "HorizontalPodAutoscaler scale the InferenceServ"),
        ("External", "argocd", "remove spec.replicas from what it applies"),
    ],
)
def test_overwritten_replicas_name_the_remedy_of_the_mode(mode: str, by: str, said: str) -> None:
    text = overridden(OverwriteBackoff(by=by, instead=5), 3, mode)
    assert said in text
    assert ("until the decision changes" in text) is (mode == "Auto")


@pytest.mark.parametrize(
    ("replicas", "ready", "said"),
    [
        (0, 0, None),
        (2, 0, "it is learned once a replica is ready; see Ready"),
        (2, 1, None),
    ],
)
def test_unknown_cost_asks_for_requests_only_where_one_can_be_answered(
    replicas: int, ready: int, said: str | None
) -> None:
    assert steps_of("Auto", replicas, ready, "shop").get(StatusReason.COST_UNKNOWN) == said


@pytest.mark.parametrize("mode", ["External", "Recommend"])
@pytest.mark.parametrize("replicas", [0, 2])
def test_steps_where_decisions_are_advice_are_brief_and_start_nothing(
    mode: str, replicas: int
) -> None:
    steps = steps_of(mode, replicas, 0, "shop").values()
    assert max(map(len, steps)) <= 70
    assert not [step for step in steps if "request" in step]
    assert StatusReason.NO_READY_REPLICAS not in steps_of("Auto", replicas + 1, replicas, "shop")
