"""The troubleshooting page quotes messages of the operator, and names existing reasons."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headroom.console.service_state import State
from support.controller_world import World, play

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "operator/guide/TROUBLESHOOTING.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "operator/REFERENCE.md").read_text(encoding="utf-8")
SLO = {"latency": {"percentile": 95, "target": "1.5s"}, "utilizationCeiling": 0.8}
REPLICA_FULL_RPS = 10.2


def words(text: str) -> str:
    """Text without line breaks and with each number as one sign: figures follow the tuning."""
    return re.sub(r"[\d.]*\d", "#", " ".join(text.split()))


def decided(world: World) -> str:
    decision = world.status("ranker")["decision"]
    return f"{decision['reason']}: {decision['message']}"


async def rises(world: World) -> str:
    world.create("ranker", slo=SLO)
    world.pods.arrivals_rps["ranker"] = 7.0
    await world.run_for(300.0)
    world.pods.arrivals_rps["ranker"] = 21.0
    await world.run_for(12.0)
    return decided(world)


async def falls(world: World) -> str:
    world.create("ranker", slo=SLO)
    world.pods.arrivals_rps["ranker"] = 21.0
    await world.run_for(300.0)
    world.pods.arrivals_rps["ranker"] = 5.0
    await world.run_for(60.0)
    return decided(world)


async def is_bounded(world: World) -> str:
    world.create("ranker", slo=SLO, scaling={"maxReplicas": 2})
    world.pods.arrivals_rps["ranker"] = 7.0
    await world.run_for(300.0)
    world.pods.arrivals_rps["ranker"] = 25.0
    await world.run_for(200.0)
    return decided(world)


async def hides_demand(world: World) -> str:
    world.create("ranker", slo=SLO, scaling={"maxReplicas": 1})
    world.pods.arrivals_rps["ranker"] = 3.0
    await world.run_for(60.0)
    (pod,) = world.pods.ready("ranker")
    world.pods.running[pod["metadata"]["name"]] = 64
    world.pods.arrivals_rps["ranker"] = REPLICA_FULL_RPS
    await world.run_for(120.0)
    return world.message("DemandVisible", "ranker").partition("; wait:")[0]


async def has_another_autoscaler(world: World) -> str:
    world.create_workload("own")
    world.create("ranker", target="own", slo=SLO)
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "own"}
    world.cluster.put(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "own", "namespace": "default"},
            "spec": {"scaleTargetRef": reference},
        }
    )
    await world.run_for(120.0)
    return world.message("ScalingActive", "ranker")


async def is_silent(world: World) -> str:
    world.create("ranker", slo=SLO)
    world.pods.arrivals_rps["ranker"] = 15.0
    await world.run_for(300.0)
    world.pods.silent = True
    await world.run_for(180.0)
    return decided(world)


async def lacks_nodes(world: World) -> str:
    world.create("ranker", slo=SLO)
    world.pods.capacity = 2
    world.pods.arrivals_rps["ranker"] = 25.0
    await world.run_for(300.0)
    return world.message("CapacityAvailable", "ranker")


SCENARIOS = [rises, falls, is_bounded, hides_demand, has_another_autoscaler, is_silent, lacks_nodes]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_page_quotes_the_operator(scenario: Callable[[World], Awaitable[str]]) -> None:
    async def check(world: World) -> None:
        assert words(await scenario(world)) in words(PAGE)

    play(check)


def test_page_names_existing_reasons_and_states() -> None:
    named = set(re.findall(r"`([A-Z][a-z]+(?:[A-Z][A-Za-z]*)+)`", PAGE))
    assert len(named) > 30
    unknown = named - set(State)
    assert [name for name in sorted(unknown) if f"`{name}`" not in REFERENCE] == []
