"""Two operators; every half a minute the leader is stopped, killed or paused.

The load of one service rises now and then, also without a leader; the others' load is constant.
Nothing may be taken from an earlier leader once the next one has written to the same object, and no
replica may go: at no time are fewer needed.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from reliability.leaders.lease_terms import fallen, too_late, writes_of
from reliability.leaders.operators import Candidate, candidate, holder, taken_over
from reliability.testbed.exporter import REPLICA_RPS
from reliability.testbed.testbed import SharedCluster
from reliability.testbed.world import NotReached, World, world

EVERY_S = 30.0
AFTER_SIGTERM_S, AFTER_SIGKILL_S = 5.0, 20.0
TICK = "1s"
RISING, STEADY, BUSY = "rising", "steady", "busy"
MOST = 14.0
"""Replicas' load: a rise for every fault of ten minutes, so that each brings a write."""
LEFT_OVER_S = 2.0
"""Time for a leader that goes on after its time to write what it still wants to."""


class LeaderFault(StrEnum):
    """Fault of a leader."""

    TERM = "SIGTERM"
    KILL = "SIGKILL"
    STOP = "SIGSTOP until another leads"
    STOP_IN_A_WRITE = "SIGSTOP with a write on its way, which arrives when another leads"


@dataclass(slots=True)
class Rivalry:
    """The outcome of the competition."""

    faults: list[LeaderFault] = field(default_factory=list)
    taken_over_s: dict[LeaderFault, list[float]] = field(default_factory=lambda: defaultdict(list))
    """From each fault to the next leader's first status."""
    late_writes_refused: int = 0
    wrongs: list[str] = field(default_factory=list)
    writes: int = 0
    """Accepted writes of all leaders."""

    def slowest_s(self, fault: LeaderFault) -> float:
        """The longest take-over after such a fault; 0 where there was none."""
        return max(self.taken_over_s[fault], default=0.0)


def drawn(seed: int, count: int) -> list[LeaderFault]:
    """Draw faults, each kind as often as the others."""
    chance, found = random.Random(f"faults {seed}"), list[LeaderFault]()
    while len(found) < count:
        found += chance.sample(list(LeaderFault), k=len(LeaderFault))
    return found[:count]


async def contend(on: SharedCluster, faults: Sequence[LeaderFault]) -> Rivalry:
    """Disturb leaders one after another, until time is over or no operator takes over any more."""
    rivalry = Rivalry()
    async with (
        world(on, "leaders", lease=True) as of,
        candidate(of, "operator-1", TICK) as one,
        candidate(of, "operator-2", TICK) as other,
    ):
        both = (one, other)
        try:
            await _settle(of, both)
        except NotReached as error:
            rivalry.wrongs.append(f"no leader at the start: {error}")
            return rivalry
        begun_s, load = time.monotonic(), 0.5
        for number, fault in enumerate(faults):
            await asyncio.sleep(max(0.0, begun_s + number * EVERY_S - time.monotonic()))
            if time.monotonic() > begun_s + len(faults) * EVERY_S:
                break
            if number % 3 == 1 or fault is LeaderFault.STOP_IN_A_WRITE:
                load = min(load + 0.9, MOST)
            rivalry.faults.append(fault)
            try:
                await _deal(of, both, fault, load * REPLICA_RPS, rivalry)
            except (NotReached, TimeoutError) as error:
                rivalry.wrongs.append(f"no. {number}, {fault}: {error}")
                break
        await asyncio.sleep(EVERY_S / 3)
        writes = [write for each in both for write in writes_of(each.proxy.exchanges, each.name)]
        rivalry.writes = len(writes)
        rivalry.wrongs += too_late(writes) + fallen(of.replicas_of)
        rivalry.wrongs += [
            f"{name}: {of.replicas_of[name]} instead of {wanted}"
            for name, wanted in ((STEADY, [1, 2]), (BUSY, [1]))
            if of.replicas_of[name] != wanted
        ]
    return rivalry


async def _settle(of: World, both: Sequence[Candidate]) -> None:
    """Begin: one leads, the other could, and all services serve."""
    for name in (RISING, STEADY, BUSY):
        await of.apply(name, scaling={"maxReplicas": 16})
    for each in both:
        await of.wait(f"{each.name} is ready", each.process.ready)
    for name in (RISING, STEADY, BUSY):
        await of.wait(f"{name} serves", partial(of.serves, 1, name))
    for name, share in ((RISING, 0.5), (STEADY, 1.5), (BUSY, 0.6)):
        of.load(share * REPLICA_RPS, name)
    await of.wait("two services with constant load serve", lambda: of.serves(2, STEADY))


async def _deal(
    of: World, both: Sequence[Candidate], fault: LeaderFault, rate_rps: float, rivalry: Rivalry
) -> None:
    """Disturb the leader, wait for the other operator, and let the first come back."""
    await of.wait("a leader", lambda: holder(of))
    name = await holder(of)
    (leader,) = (each for each in both if each.name == name)
    (follower,) = (each for each in both if each is not leader)
    await of.wait(f"{follower.name} is ready", follower.process.ready)
    if fault is LeaderFault.STOP_IN_A_WRITE:
        leader.gate.arm()
        of.load(rate_rps, RISING)  # its status is written before the replicas that it explains
        await asyncio.wait_for(leader.gate.caught.wait(), 90.0)
    begun_s = time.monotonic()
    match fault:
        case LeaderFault.TERM:
            await leader.process.stop()
        case LeaderFault.KILL:
            await leader.process.kill()
        case _:
            os.kill(leader.process.pid, signal.SIGSTOP)
    of.load(rate_rps, RISING)
    _, seconds = await taken_over(of, [follower], begun_s)
    rivalry.taken_over_s[fault].append(seconds)
    if fault in (LeaderFault.TERM, LeaderFault.KILL):
        await leader.process.start()
        return
    if fault is LeaderFault.STOP_IN_A_WRITE:
        leader.gate.released.set()
        await asyncio.wait_for(leader.gate.answered.wait(), 30.0)
        rivalry.late_writes_refused += leader.gate.code == 409
    os.kill(leader.process.pid, signal.SIGCONT)
    await asyncio.sleep(LEFT_OVER_S)
    if leader.process.ended:
        rivalry.wrongs.append(f"{leader.name} ended after {fault}")
        await leader.process.start()
