"""Every fault on every verb that the operator uses, for a minute, while load rises.

The load that needs one more replica comes while the fault lasts, so that the first decision after
its end has something to write: what counts is when that write is taken, and that no other is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from reliability.calls import Verb
from reliability.exporter import REPLICA_RPS
from reliability.ground import Ground, NotReached, World, world
from reliability.rules import (
    Delay,
    DelayEvents,
    Drip,
    Fault,
    Hang,
    LoginPage,
    LoseEvents,
    Refuse,
    RepeatEvents,
    Reset,
    Rule,
    Silence,
    TimeTravel,
    Truncate,
    WatchError,
    can_strike,
)

FAULT_S = 60.0
TICK_S = 2.0
BOUND_S = 2 * TICK_S + 5.0
STANDING, WANTED = 1, 2

VERBS = (Verb.GET, Verb.LIST, Verb.WATCH, Verb.CREATE, Verb.PATCH)
FAULTS: tuple[Fault, ...] = (
    Refuse(code=429, retry_after_s=1),
    Refuse(code=500),
    Refuse(code=503),
    Refuse(code=409),
    Refuse(code=422),
    Refuse(code=403),
    Refuse(code=410),
    Reset(),
    Reset(taken=True),
    Hang(),
    Delay(seconds=3.0),
    Drip(),
    Truncate(),
    LoginPage(),
    TimeTravel(seconds=20.0),
    WatchError(code=410),
    WatchError(code=500),
    Silence(),
    LoseEvents(),
    DelayEvents(seconds=5.0),
    RepeatEvents(),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """One fault on one verb, and what became of it."""

    fault: Fault
    verb: Verb
    decided_s: float = 0.0
    """From the end of the fault until the write that the load asks for; 0 where it came before."""
    wrongs: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether it was decided in time and nothing else was written."""
        return not self.wrongs and self.decided_s <= BOUND_S

    def __str__(self) -> str:
        """Say it in a line."""
        return f"{self.fault} on {self.verb}"


def cells() -> list[tuple[Fault, Verb]]:
    """Every fault with every verb that it can strike."""
    return [(fault, verb) for fault in FAULTS for verb in VERBS if can_strike(fault, verb)]


async def suffer(on: Ground, fault: Fault, verb: Verb, fault_s: float = FAULT_S) -> Outage:
    """Play one: a service that serves and is measured, the fault, more load, the end of it."""
    try:
        async with world(on, "outage", tick=f"{TICK_S:g}s") as one:
            await one.operator.start()
            await one.apply(scaling={"maxReplicas": 3})
            await one.wait("serves", lambda: one.serves(STANDING))
            one.load(0.5 * REPLICA_RPS)
            await one.wait("measured", lambda: _is_measured(one))
            one.proxy.strike([Rule(fault=fault, verbs=frozenset({verb}))])
            await asyncio.sleep(fault_s / 2)
            one.load(1.6 * REPLICA_RPS)
            await asyncio.sleep(fault_s / 2)
            one.proxy.strike([])
            ended_s = time.monotonic()
            await one.wait("scaled", lambda: _is_asked_for(one), timeout_s=180.0)
            await asyncio.sleep(2 * TICK_S)
            return Outage(
                fault=fault,
                verb=verb,
                decided_s=max(0.0, _taken_s(one) - ended_s),
                wrongs=_wrongs(one),
            )
    except NotReached as error:
        return Outage(fault=fault, verb=verb, wrongs=(str(error),))


async def suffer_all(
    on: Ground, chosen: Sequence[tuple[Fault, Verb]], *, side_by_side: int, fault_s: float = FAULT_S
) -> AsyncIterator[Outage]:
    """Play several at a time, and give each as it ends."""
    room = asyncio.Semaphore(side_by_side)

    async def play(fault: Fault, verb: Verb) -> Outage:
        async with room:
            return await suffer(on, fault, verb, fault_s)

    runs = [asyncio.create_task(play(fault, verb)) for fault, verb in chosen]
    try:
        for run in asyncio.as_completed(runs):
            yield await run
    finally:
        for task in runs:
            task.cancel()
        await asyncio.gather(*runs, return_exceptions=True)


async def _is_measured(one: World) -> bool:
    status, _ = await one.condition("MetricsAvailable")
    return status == "True"


async def _is_asked_for(one: World) -> bool:
    return bool((await one.deployment()).get("spec", {}).get("replicas") == WANTED)


def _taken_s(one: World) -> float:
    """When the wanted replicas were written; a fault may have hidden the answer, not the write."""
    writes = (each for each in one.proxy.exchanges if each.taken and each.replicas == WANTED)
    return next((each.at_s for each in writes), 0.0)


def _wrongs(one: World) -> tuple[str, ...]:
    wrongs = []
    if one.replicas_seen != [STANDING, WANTED]:
        wrongs.append(f"replicas {one.replicas_seen} instead of {[STANDING, WANTED]}")
    if one.operator.ended:
        wrongs.append("the operator's process has ended")
    return tuple(wrongs)
