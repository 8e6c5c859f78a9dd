"""A status that cannot be written: services are scaled all the same."""

from __future__ import annotations

import asyncio

import pytest

from headroom.errors import ClusterError, Conflict, Forbidden, Unavailable
from support.cluster_world import Manifest, rejected
from support.controller_world import REPLICA_RPS, World, play

KIND = "InferenceService"
TROUBLES = [
    rejected("admission webhook: denied"),
    Forbidden("no patch on status"),
    Unavailable("failed calling webhook"),
]


@pytest.mark.parametrize("error", TROUBLES, ids=lambda error: type(error).__name__)
def test_status_that_is_not_accepted_stops_no_scaling(error: ClusterError) -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(60.0)
        world.cluster.fail("apply_status", KIND, error, times=9999)
        world.pods.arrivals_rps["resnet"] = 6 * REPLICA_RPS
        await world.run_for(60.0)
        assert world.replicas() >= 6
        assert world.recorder.outcomes[-1] == type(error).__name__, "it is not taken for success"
        world.cluster.stop_failing()
        await world.run_for(20.0)
        assert world.status()["replicas"] == world.replicas()
        assert world.recorder.outcomes[-1] == "ok"

    play(scenario)


def test_status_that_cannot_be_built_stops_no_scaling() -> None:
    """Whatever is wrong with it: here a figure that is no JSON."""

    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(60.0)

        async def refuse(manifest: Manifest, *, field_manager: str) -> Manifest:
            raise TypeError("not JSON")

        world.cluster.apply_status = refuse  # type: ignore[method-assign]
        world.pods.arrivals_rps["resnet"] = 6 * REPLICA_RPS
        await world.run_for(60.0)
        assert world.replicas() >= 6
        assert world.recorder.outcomes[-1] == "TypeError"

    play(scenario)


def test_status_write_that_hangs_delays_replicas_by_a_few_seconds() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(60.0)

        async def hang(manifest: Manifest, *, field_manager: str) -> Manifest:
            await asyncio.sleep(6.0)
            raise Unavailable("it did not answer within 6 s")

        world.cluster.apply_status = hang  # type: ignore[method-assign]
        world.pods.arrivals_rps["resnet"] = 6 * REPLICA_RPS
        begun_s = world.clock.elapsed_s()
        while not world.cluster.scale_writes:
            await world.run_for(0.5)
            assert world.clock.elapsed_s() - begun_s < 20.0
        await world.run_for(60.0)
        assert world.replicas() >= 6

    play(scenario)


def test_decision_on_an_older_object_is_not_written() -> None:
    """The service was changed, and the API server is gone before it says how."""

    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(60.0)
        world.cluster.fail("apply_status", KIND, Conflict("modified"), times=9999)
        world.cluster.fail("get", KIND, Unavailable("down"), times=9999)
        world.pods.arrivals_rps["resnet"] = 6 * REPLICA_RPS
        await world.run_for(30.0)
        assert world.cluster.scale_writes == []

    play(scenario)
