"""Several operators on one API server: timely take-overs, and no write of an earlier leader."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from cluster import ControlPlane
from reliability.leaders.leaders import AFTER_SIGKILL_S, AFTER_SIGTERM_S
from reliability.leaders.operators import Candidate, Holding, candidate, holder, taken_over
from reliability.testbed.testbed import SharedCluster, shared_cluster
from reliability.testbed.world import World, world

pytestmark = pytest.mark.clock

REPLICA_RPS = 9.0


async def leads(of: World) -> Candidate:
    """Let the first operator hold the Lease and look after a service."""
    await of.operator.start()
    await of.apply()
    await of.wait("a leader", lambda: holder(of))
    gate = of.proxy.gate
    assert isinstance(gate, Holding)
    return Candidate("operator-0", of.operator, of.proxy, gate)


async def stand_by(of: World, *followers: Candidate) -> None:
    """Wait until the service serves, and every follower could take over at once."""
    for one in followers:
        await of.wait("a follower is ready", one.process.ready)
    await of.wait("one replica serves", lambda: of.serves(1))
    assert await holder(of) == "operator-0"
    assert [one.wrote_after(0.0) for one in followers] == [[] for _ in followers]


def never_fell(replicas: list[int]) -> bool:
    return replicas == sorted(replicas)


@pytest.mark.timeout(300, func_only=True)
async def test_ended_leaders_are_replaced_in_time_and_write_no_more(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with shared_cluster(control_plane, tmp_path) as on, asyncio.TaskGroup() as side_by_side:
        side_by_side.create_task(a_leader_that_ends_or_is_killed_is_replaced_in_time(on))
        side_by_side.create_task(what_a_stopped_leader_had_on_its_way_is_refused(on))


async def a_leader_that_ends_or_is_killed_is_replaced_in_time(on: SharedCluster) -> None:
    async with world(on, "killed", gate=Holding(), lease=True) as of:
        first = await leads(of)
        async with candidate(of, "operator-1") as one, candidate(of, "operator-2") as other:
            await stand_by(of, one, other)
            of.load(2 * REPLICA_RPS)
            await of.wait("more replicas", lambda: of.serves(3))
            begun_s = time.monotonic()
            await first.process.stop()
            second, after_sigterm_s = await taken_over(of, (one, other), begun_s)
            begun_s = time.monotonic()
            await second.process.kill()
            (third,) = {one, other} - {second}
            _, after_sigkill_s = await taken_over(of, [third], begun_s)
            await asyncio.sleep(2.0)
        print(f"taken over {after_sigterm_s:.1f} s after SIGTERM, {after_sigkill_s:.1f} s SIGKILL")
        assert after_sigterm_s < AFTER_SIGTERM_S
        assert after_sigkill_s < AFTER_SIGKILL_S
        assert never_fell(of.replicas_seen), "no replica goes because the leader did"


async def what_a_stopped_leader_had_on_its_way_is_refused(on: SharedCluster) -> None:
    async with world(on, "stopped", gate=Holding(), lease=True) as of:
        old = await leads(of)
        gate = old.gate
        async with candidate(of, "operator-1") as new:
            await stand_by(of, new)
            gate.arm()
            of.load(2 * REPLICA_RPS)  # its status is written before the replicas that it explains
            await asyncio.wait_for(gate.caught.wait(), 60.0)
            os.kill(old.process.pid, signal.SIGSTOP)
            stopped_s = time.monotonic()
            await taken_over(of, [new], stopped_s)
            gate.released.set()
            await asyncio.wait_for(gate.answered.wait(), 30.0)
            assert gate.code == 409
            os.kill(old.process.pid, signal.SIGCONT)
            await asyncio.sleep(4.0)
            first_s = new.first_status_after(stopped_s)
            assert first_s is not None
            assert old.wrote_after(first_s) == []
            assert await holder(of) == "operator-1"
            assert not old.process.ended, "it follows now"
            await of.wait("more replicas", lambda: of.serves(3))
        assert never_fell(of.replicas_seen)
