"""Plays outages in lanes: each is one operator that goes through one outage after another."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict

from reliability.outages.fault_sets import FaultSet
from reliability.outages.outages import FAULT_S, PART, TICK_S, Outage, run_outage
from reliability.testbed.admin import Refused
from reliability.testbed.testbed import SharedCluster
from reliability.testbed.world import NotReached, World, world
from results import Results


@contextlib.asynccontextmanager
async def lane(on: SharedCluster) -> AsyncIterator[World]:
    """Run an operator to which outages happen."""
    async with world(on, "outage", tick=f"{TICK_S:g}s", prometheus=True) as one:
        await one.operator.start()
        yield one


async def run_outages(
    on: SharedCluster,
    chosen: Sequence[FaultSet],
    *,
    side_by_side: int,
    fault_s: float = FAULT_S,
    results: Results | None = None,
) -> AsyncIterator[Outage]:
    """Play them in several lanes, and give each as it ends; those that are kept at once."""
    left: list[tuple[int, FaultSet]] = []
    for number, faults in enumerate(chosen):
        row = results.get(PART, f"{faults.name} for {fault_s:g} s") if results else None
        if row is None:
            left.append((number, faults))
        else:
            yield Outage(**{**row, "wrongs": tuple(row["wrongs"])})
    ended: asyncio.Queue[Outage] = asyncio.Queue()
    left.reverse()

    async def run_lane() -> None:
        while left:
            async with lane(on) as one:
                await _run_in_turn(one, left, fault_s, ended)

    expected = len(left)
    async with asyncio.TaskGroup() as group:
        for _ in range(min(side_by_side, expected)):
            group.create_task(run_lane())
        for _ in range(expected):
            outage = await ended.get()
            if results is not None:
                results.put(PART, f"{outage.faults} for {fault_s:g} s", asdict(outage))
            yield outage


async def _run_in_turn(
    one: World, left: list[tuple[int, FaultSet]], fault_s: float, ended: asyncio.Queue[Outage]
) -> None:
    """Take what is left, one after another, until something goes wrong: then begin a new lane."""
    while left:
        number, faults = left.pop()
        try:
            outage = await run_outage(one, number, faults, fault_s)
        except (NotReached, Refused) as error:
            outage = Outage(faults=faults.name, wrongs=(str(error),))
        await ended.put(outage)
        if not outage.holds:
            return
