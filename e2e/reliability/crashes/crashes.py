"""Kills the operator around each of its writes, restarts it, and compares the end state.

A scenario runs once unharmed, and every write that the API server took in it is noted. Then it runs
once for each of these writes and each side of it: the process gets SIGKILL before the request
reaches the API server, or after it was taken and before the answer comes back. Or it is stopped
with the request on its way, another operator takes the lease over and ends the scenario, and only
then the request arrives and the process goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from enum import StrEnum

from reliability.crashes.crash_scenarios import Scenario
from reliability.crashes.verdicts import Ending, Memory, Verdict, judge
from reliability.fault_proxy.calls import Call
from reliability.leaders.operators import candidate
from reliability.testbed.admin import Object, Refused
from reliability.testbed.testbed import SharedCluster
from reliability.testbed.world import NotReached, World, world

PATIENCE_S = 240.0
"""Many processes start at once; on a busy machine each may take a minute."""
LEFT_OVER_S = 3.0
"""Time for the stopped operator to write what it still wants to."""
LEASES = "leases"
"""Renewals are no acts on a service; what a leader may write is shown elsewhere."""


class Side(StrEnum):
    """The side of a write at which the operator is killed."""

    BEFORE = "before"
    AFTER = "after"
    STOPPED = "stopped in"
    """Not killed, and the write arrives when another leads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The n-th write of a kind in a scenario, and a side of it."""

    scenario: str
    words: str
    number: int
    side: Side

    def __str__(self) -> str:
        """Say it in a line."""
        return f"{self.scenario}: {self.side} {self.words} no. {self.number}"


class Trap:
    """Passes every request but one, which it holds: its sender is killed meanwhile."""

    def __init__(self, point: Point | None) -> None:
        self._point = point
        self._counts: Counter[str] = Counter()
        self._armed = False
        self.reached = asyncio.Event()
        self.released = asyncio.Event()

    def arm(self) -> None:
        """Begin to count."""
        self._armed = True

    async def before(self, call: Call) -> None:
        """Count a write; hold it if it is the one."""
        if self._armed and is_act(call):
            self._counts[call.words] += 1
            await self._hold_at((Side.BEFORE, Side.STOPPED), call)

    async def after(self, call: Call, code: int) -> None:
        """Hold the answer of a write if it was the one."""
        if self._armed and is_act(call):
            await self._hold_at((Side.AFTER,), call)

    async def _hold_at(self, sides: Collection[Side], call: Call) -> None:
        point = self._point
        if point is None or point.side not in sides or self.reached.is_set():
            return
        if (call.words, self._counts[call.words]) == (point.words, point.number):
            self.reached.set()
            await self.released.wait()


def is_act(call: Call) -> bool:
    """Return whether it is a write on behalf of a service."""
    return call.writes and call.resource != LEASES


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A scenario unharmed: how it ends, and where it could be interrupted."""

    ending: Ending
    points: tuple[Point, ...]


async def unharmed(on: SharedCluster, scenario: Scenario) -> Baseline:
    """Run without a crash; raise NotReached where even that does not end well."""
    async with _stage(on, scenario, None) as (one, _):
        seen = len(one.proxy.exchanges)
        begun = len(one.replicas_seen)
        await scenario.act(one)
        await one.wait(f"{scenario.name}: the end", lambda: scenario.ended(one), PATIENCE_S)
        taken = [each.call for each in one.proxy.exchanges[seen:] if each.taken]
        ending = await _ending(one, begun)
    counts: Counter[str] = Counter()
    points = []
    for call in filter(is_act, taken):
        counts[call.words] += 1
        points += [
            Point(scenario=scenario.name, words=call.words, number=counts[call.words], side=side)
            for side in Side
        ]
    return Baseline(ending=ending, points=tuple(points))


async def explore(
    on: SharedCluster, scenario: Scenario, baseline: Baseline, point: Point
) -> Verdict:
    """Run with a crash at the point, and judge what it came to."""
    try:
        async with _stage(on, scenario, point) as (one, trap):
            begun = len(one.replicas_seen)
            trap.arm()
            await scenario.act(one)
            await one.wait(
                f"{point}: the write", lambda: _reached_or_ended(trap, one, scenario), PATIENCE_S
            )
            memory = await remembered(one)
            reached = trap.reached.is_set()
            if reached and point.side is Side.STOPPED:
                await _pass_over(one, trap, scenario, point)
            elif reached:
                await one.operator.kill()
                await one.operator.start()
            await one.wait(f"{point}: the end", lambda: scenario.ended(one), PATIENCE_S)
            ending = await _ending(one, begun)
            return judge(str(point), baseline.ending, ending, memory, reached=reached)
    except (NotReached, Refused) as error:
        return Verdict(point=str(point), reached=True, wrongs=(str(error),))


async def _pass_over(one: World, trap: Trap, scenario: Scenario, point: Point) -> None:
    """Stop the operator, let another end the scenario, and then let the first go on."""
    os.kill(one.operator.pid, signal.SIGSTOP)
    async with candidate(one, "operator-1"):
        await one.wait(f"{point}: the other's end", lambda: scenario.ended(one), PATIENCE_S)
        trap.released.set()
        os.kill(one.operator.pid, signal.SIGCONT)
        await asyncio.sleep(LEFT_OVER_S)


async def _reached_or_ended(trap: Trap, one: World, scenario: Scenario) -> bool:
    """Wait for the write; one that this run does without, as a report at a change, never comes."""
    if not trap.reached.is_set() and await scenario.ended(one):
        await asyncio.sleep(1.0)
        return True
    return trap.reached.is_set()


@contextlib.asynccontextmanager
async def _stage(
    on: SharedCluster, scenario: Scenario, point: Point | None
) -> AsyncIterator[tuple[World, Trap]]:
    """Only who is stopped needs a lease; after a kill it would have to run out first."""
    trap, lease = Trap(point), point is not None and point.side is Side.STOPPED
    async with world(on, scenario.name, gate=trap, lease=lease) as one:
        await one.operator.start()
        await scenario.prepare(one)
        yield one, trap


async def _ending(one: World, begun: int) -> Ending:
    service, deployment = await one.service(), await one.deployment()
    status = service.get("status", {})
    managers = deployment.get("metadata", {}).get("managedFields", ())
    return Ending(
        replicas=tuple(one.replicas_seen[begun:]),
        asked=int(deployment.get("spec", {}).get("replicas", 0)),
        ready=int(status.get("readyReplicas", 0)),
        conditions=frozenset(
            (each["type"], each["status"], each["reason"])
            for each in status.get("conditions", ())
            if each["type"] in ("Ready", "AbleToScale", "CapacityAvailable")
        ),
        owners=frozenset((each["manager"], each["operation"]) for each in managers),
        template=_template(deployment, one.shared.exporter.port),
        memory=await remembered(one),
    )


def _template(deployment: Object, port: int) -> str:
    """Write the pod template, but the port: it is another one after an interruption."""
    template = deployment.get("spec", {}).get("template", {})
    return json.dumps(template, sort_keys=True).replace(str(port), "PORT")


async def remembered(one: World) -> Memory:
    """Read what the operator's checkpoint keeps."""
    checkpoint = (await one.service()).get("status", {}).get("checkpoint")
    if not checkpoint:
        return Memory()
    kept = json.loads(checkpoint)
    return Memory(
        cold_starts=tuple(kept.get("coldStarts", ())),
        batch_sizes=frozenset(row[0] for row in kept.get("cost", ())),
    )
