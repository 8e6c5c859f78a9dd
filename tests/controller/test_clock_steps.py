"""The operator's clock goes back: decisions go on with the present state."""

from __future__ import annotations

import pytest

from support.cluster_world import rejected
from support.controller_world import REPLICA_RPS, World, play


@pytest.mark.parametrize("back_s", [15.0, 600.0, 86_400.0], ids="{} s".format)
def test_load_is_followed_at_once_and_not_counted_at_once_later(
    back_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        for name in ("resnet", "bert"):
            world.create(name)
            world.pods.arrivals_rps[name] = 1.5 * REPLICA_RPS
        await world.run_for(120.0)
        assert world.replicas() == 2
        world.operator_clock.ahead_s -= back_s
        world.pods.arrivals_rps["resnet"] = 4.0 * REPLICA_RPS
        seen = []
        for _ in range(75):
            await world.run_for(10.0)
            seen.append(world.replicas())
        assert min(seen[3:]) >= 4, "40 s later"
        assert max(seen) <= 5, "also when the time is what it was"

    play(scenario)
    assert caplog.text.count("the clock went back") == 1


def test_small_correction_of_the_clock_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        world.create(scaling={"minReplicas": 1, "scaleDown": {"stabilizationWindow": "20s"}})
        world.pods.arrivals_rps["resnet"] = 4.0 * REPLICA_RPS
        await world.run_for(120.0)
        latest_s = world.recorder.decisions[-1].time_s
        world.operator_clock.ahead_s -= 9.0
        await world.run_for(30.0)
        assert min(one.time_s for one in world.recorder.decisions[-10:]) >= latest_s
        assert world.recorder.decisions[-1].signals.arrival_rps.value is not None

    play(scenario)
    assert "the clock went back" not in caplog.text


def test_refused_spec_is_tried_again_after_the_clock_went_back() -> None:
    async def scenario(world: World) -> None:
        world.cluster.fail("dry_run", "Deployment", rejected("quota exceeded"))
        world.create()
        await world.run_for(3.0)
        assert world.condition("Ready")[0] == "False"
        world.operator_clock.ahead_s -= 3600.0
        await world.run_for(20.0)
        assert world.replicas() == 1
        assert world.condition("Ready") == ("True", "Serving")

    play(scenario)
