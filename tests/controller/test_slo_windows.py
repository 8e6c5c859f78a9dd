"""Minutes with traffic are judged by the SLO, shown in status, and kept over a restart."""

from __future__ import annotations

from support.controller_world import REPLICA_RPS, World, play


def test_minutes_are_judged_while_requests_complete() -> None:
    async def scenario(world: World) -> None:
        world.create(scaling={"maxReplicas": 1})
        await world.run_for(300.0)
        assert world.recorder.minutes == []
        assert world.status()["slo"]["errorBudgetRemaining"] == 1.0
        world.pods.arrivals_rps["resnet"] = 0.3 * REPLICA_RPS
        await world.run_for(320.0)
        kept = world.status()["slo"]["windowsMet"]
        assert 4 <= kept <= 6  # status is written once a minute where nothing else changes
        assert world.status()["slo"]["windowsMissed"] == 0
        assert world.status()["slo"]["attainment"] == 1.0

    play(scenario)


def test_missed_minutes_survive_a_restart() -> None:
    """The world's servers take 250 ms for whatever they answer."""

    async def scenario(world: World) -> None:
        world.create(scaling={"maxReplicas": 1}, slo={"latency": {"target": "230ms"}})
        world.pods.arrivals_rps["resnet"] = 0.3 * REPLICA_RPS
        await world.run_for(600.0)
        before = world.status()["slo"]
        assert before["windowsMissed"] >= 5
        assert before["burnRate"] > 10
        assert before["errorBudgetRemaining"] < 1.0
        await world.restart_operator()
        world.pods.arrivals_rps["resnet"] = 0.0
        await world.run_for(20.0)
        assert world.status()["slo"]["windowsMissed"] == before["windowsMissed"]

    play(scenario)
