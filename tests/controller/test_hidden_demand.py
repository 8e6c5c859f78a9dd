"""A service whose clients wait for its replicas: reported in status, conditions and events."""

from __future__ import annotations

from support.controller_world import World, play

FULL_RPS = 10.2
"""One replica of the world's servers answers at most 10.26/s."""


def _reason(world: World) -> str:
    (one,) = [each for each in world.status()["conditions"] if each["type"] == "DemandVisible"]
    return str(one["reason"])


def test_demand_that_a_saturated_replica_hides_is_reported_while_it_lasts() -> None:
    async def scenario(world: World) -> None:
        world.create(scaling={"maxReplicas": 1})
        world.pods.arrivals_rps["resnet"] = 0.3 * FULL_RPS
        await world.run_for(60.0)
        assert _reason(world) == "DemandCounted"
        assert world.status()["demand"]["known"] == "Exact"

        (pod,) = world.pods.ready("resnet")
        world.pods.running[pod["metadata"]["name"]] = 64
        world.pods.arrivals_rps["resnet"] = FULL_RPS
        await world.run_for(120.0)
        demand = world.status()["demand"]
        assert demand["known"] == "AtLeast"
        assert demand["rate"].startswith(">=")
        assert demand["atMostPerSecond"] > demand["requestsPerSecond"]
        assert _reason(world) == "HiddenDemand"
        assert "64 requests in flight at 1 saturated replica" in world.message("DemandVisible")
        (event,) = world.cluster.events("HiddenDemand")
        assert event["type"] == "Warning"

        world.pods.running.clear()
        world.pods.arrivals_rps["resnet"] = 0.3 * FULL_RPS
        await world.run_for(30.0)
        assert _reason(world) == "HiddenDemand", "a change back has to last 60 s"
        await world.run_for(180.0)
        assert _reason(world) == "DemandCounted"

    play(scenario)
