"""Every fault on every verb that the operator uses, for a minute, under load.

While a fault lasts three services need a decision: of one the load rises, of one a user raises the
floor, one is created. What counts is when the writes that follow from it are taken once the fault
has ended, and that no other is. A lane is one operator that goes through one outage after another,
as a long-lived process does; several lanes go on side by side.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from reliability.fault_proxy.calls import Verb
from reliability.outages.fault_sets import FaultSet
from reliability.testbed.exporter import PROMETHEUS, REPLICA_RPS
from reliability.testbed.world import NotReached, World

PART = "outages"
FAULT_S = 60.0
TICK_S = 2.0
BOUND_S = 2 * TICK_S + 5.0
WATCH_BACK_S = 15.0
PATIENCE_S = 60.0
"""After the end: what takes longer than the bound is still measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """The outcome of one outage."""

    faults: str
    decided_s: float = 0.0
    """From the end of the fault until the last write that was due; 0 where all came before."""
    wrongs: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Return whether it was decided in time and nothing else was written."""
        return not self.wrongs and self.decided_s <= BOUND_S

    def __str__(self) -> str:
        """Say it in a line."""
        return f"{self.faults}: {self.decided_s:.1f} s" + "".join(f"; {one}" for one in self.wrongs)


async def run_outage(one: World, number: int, faults: FaultSet, fault_s: float = FAULT_S) -> Outage:
    """Run one outage of services that serve and are measured; return its outcome.

    Raises NotReached if the services do not serve before it.
    """
    loaded, edited, created = (f"{kind}-{number}" for kind in ("loaded", "edited", "created"))
    source = {} if faults.prometheus is None else {"telemetry": {"source": "Prometheus"}}
    await one.apply(loaded, scaling={"maxReplicas": 2}, **source)
    await one.apply(edited)
    one.load(0.5 * REPLICA_RPS, loaded)
    for name in (loaded, edited):
        await one.wait(f"{faults.name}: {name} serves", partial(one.serves, 1, name))
    await one.wait(f"{faults.name}: measured", lambda: _is_measured(one, loaded))
    await _inject(one, faults, (loaded, edited, created), fault_s)
    ended_s = time.monotonic()
    due = {loaded: [1, 2], edited: [1, 2], created: [1]}
    return await _outage(one, faults, due, ended_s)


async def _inject(
    one: World, faults: FaultSet, names: tuple[str, str, str], fault_s: float
) -> None:
    """Inject the faults; in their middle, raise the load, edit a service and create one."""
    loaded, edited, created = names
    one.proxy.inject(faults.rules)
    of_pages = one.shared.exporter.faults
    if faults.pods is not None:
        of_pages[one.namespace, loaded] = faults.pods
    if faults.prometheus is not None:
        of_pages[one.namespace, PROMETHEUS] = faults.prometheus
    await asyncio.sleep(fault_s / 2)
    one.load(1.6 * REPLICA_RPS, loaded)
    await one.apply(edited, scaling={"minReplicas": 2})
    await one.apply(created)
    await asyncio.sleep(fault_s / 2)
    one.proxy.inject([])
    for name in (loaded, PROMETHEUS):
        of_pages.pop((one.namespace, name), None)


async def _outage(
    one: World, faults: FaultSet, due: Mapping[str, list[int]], ended_s: float
) -> Outage:
    """Wait for what was asked for, `due` by service; return how long that took after the fault."""

    async def is_done() -> bool:
        return all(_taken_s(one, name, wanted[-1]) is not None for name, wanted in due.items())

    wrongs = []
    try:
        await one.wait(f"{faults.name}: decided", is_done, PATIENCE_S)
    except NotReached as error:
        wrongs.append(str(error))
    await asyncio.sleep(2 * TICK_S)
    if faults.ends_watches and not await _watches_again(one, ended_s):
        wrongs.append(f"no watch was reopened within {WATCH_BACK_S:g} s")
    at_s = [_taken_s(one, name, wanted[-1]) or time.monotonic() for name, wanted in due.items()]
    wrongs += [
        f"replicas of {name}: {one.replicas_of.get(name)} instead of {wanted}"
        for name, wanted in due.items()
        if one.replicas_of.get(name) != wanted
    ]
    if one.operator.ended:
        wrongs.append("the operator's process ended")
    for name in due:
        await one.delete_service(name)
    decided_s = max(0.0, max(at_s) - ended_s)
    return Outage(faults=faults.name, decided_s=decided_s, wrongs=tuple(wrongs))


async def _is_measured(one: World, name: str) -> bool:
    status, _ = await one.condition("MetricsAvailable", name)
    return status == "True"


def _taken_s(one: World, name: str, replicas: int) -> float | None:
    """Return when they were written; a fault may have hidden the answer, not the write."""
    return next(
        (
            each.at_s
            for each in one.proxy.exchanges
            if each.taken and each.replicas == replicas and each.name == name
        ),
        None,
    )


async def _watches_again(one: World, since_s: float) -> bool:
    while time.monotonic() < since_s + WATCH_BACK_S:
        if any(
            each.at_s >= since_s and each.call.verb is Verb.WATCH and each.fault is None
            for each in one.proxy.exchanges
        ):
            return True
        await asyncio.sleep(0.5)
    return False
