"""Every fault on every verb that the operator uses, for a minute, under load.

While a fault lasts three services need a decision: of one the load rises, of one a user raises the
floor, one is created. What counts is when the writes that follow from it are taken once the fault
has ended, and that no other is. A lane is one operator that suffers one outage after another, as a
long-lived process does; several lanes go on side by side.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from reliability.admin import Refused
from reliability.calls import Verb
from reliability.exporter import OF_PODS, OF_PROMETHEUS, PROMETHEUS, REPLICA_RPS, PodFault
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
from reliability.testbed import NotReached, SharedCluster, World, world
from results import Results

PART = "outages"
FAULT_S = 60.0
TICK_S = 2.0
BOUND_S = 2 * TICK_S + 5.0
WATCH_BACK_S = 15.0
PATIENCE_S = 60.0
"""After the end: what takes longer than the bound is still measured."""

VERBS = (Verb.GET, Verb.LIST, Verb.WATCH, Verb.CREATE, Verb.PATCH)
EVERY_VERB = frozenset(VERBS)
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
AWAY: tuple[Fault, ...] = (Refuse(code=503), Refuse(code=403), Reset(), Hang(), LoginPage())
"""Also on every verb at once: the API server is away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """Faults that occur at the same time."""

    name: str
    rules: tuple[Rule, ...] = ()
    pods: PodFault | None = None
    """What is wrong with the pages of the service whose load rises."""
    prometheus: PodFault | None = None
    """What is wrong with the Prometheus that is asked for them instead of its pods."""

    @property
    def ends_watches(self) -> bool:
        """Return whether no watch lives while it lasts, so that one has to begin after it.

        What spoils an answer only when it is whole breaks off the watches that are open, and lets
        the next one live: the answer to a watch is never whole.
        """
        return any(Verb.WATCH in rule.verbs and _ends(rule.fault) for rule in self.rules)


def _ends(fault: Fault) -> bool:
    return isinstance(fault, Refuse | WatchError | LoginPage) or fault == Reset(taken=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """The outcome of one outage."""

    strike: str
    decided_s: float = 0.0
    """From the end of the fault until the last write that was due; 0 where all came before."""
    wrongs: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Return whether it was decided in time and nothing else was written."""
        return not self.wrongs and self.decided_s <= BOUND_S

    def __str__(self) -> str:
        """Say it in a line."""
        return f"{self.strike}: {self.decided_s:.1f} s" + "".join(f"; {one}" for one in self.wrongs)


def strikes() -> list[Strike]:
    """Every fault on every verb that it can strike, alone; some on all; every fault of pods."""
    found = [
        Strike(name=f"{fault} on {verb}", rules=(Rule(fault=fault, verbs=frozenset({verb})),))
        for fault in FAULTS
        for verb in VERBS
        if can_strike(fault, verb)
    ]
    found += [
        Strike(name=f"{fault} on everything", rules=(Rule(fault=fault, verbs=EVERY_VERB),))
        for fault in AWAY
    ]
    found += [
        Strike(name=f"pods: {fault.value}", pods=fault) for fault in PodFault if fault in OF_PODS
    ]
    return found + [
        Strike(name=f"Prometheus: {fault.value}", prometheus=fault)
        for fault in PodFault
        if fault in OF_PROMETHEUS
    ]


@contextlib.asynccontextmanager
async def lane(on: SharedCluster) -> AsyncIterator[World]:
    """Run an operator to which outages happen."""
    async with world(on, "outage", tick=f"{TICK_S:g}s", prometheus=True) as one:
        await one.operator.start()
        yield one


async def suffer(one: World, number: int, strike: Strike, fault_s: float = FAULT_S) -> Outage:
    """Play one: services that serve and are measured, the fault, what it asks for, the end of it.

    Raises NotReached where even the beginning does not come about.
    """
    loaded, edited, created = (f"{kind}-{number}" for kind in ("loaded", "edited", "created"))
    source = {} if strike.prometheus is None else {"telemetry": {"source": "Prometheus"}}
    await one.apply(loaded, scaling={"maxReplicas": 2}, **source)
    await one.apply(edited)
    one.load(0.5 * REPLICA_RPS, loaded)
    for name in (loaded, edited):
        await one.wait(f"{strike.name}: {name} serves", partial(one.serves, 1, name))
    await one.wait(f"{strike.name}: measured", lambda: _is_measured(one, loaded))
    await _strike(one, strike, (loaded, edited, created), fault_s)
    ended_s = time.monotonic()
    due = {loaded: [1, 2], edited: [1, 2], created: [1]}
    return await _outage(one, strike, due, ended_s)


async def _strike(one: World, strike: Strike, names: tuple[str, str, str], fault_s: float) -> None:
    """Play the fault; in its middle, ask for more load, an edit and a new service."""
    loaded, edited, created = names
    one.proxy.strike(strike.rules)
    faults = one.shared.exporter.faults
    if strike.pods is not None:
        faults[one.namespace, loaded] = strike.pods
    if strike.prometheus is not None:
        faults[one.namespace, PROMETHEUS] = strike.prometheus
    await asyncio.sleep(fault_s / 2)
    one.load(1.6 * REPLICA_RPS, loaded)
    await one.apply(edited, scaling={"minReplicas": 2})
    await one.apply(created)
    await asyncio.sleep(fault_s / 2)
    one.proxy.strike([])
    for name in (loaded, PROMETHEUS):
        faults.pop((one.namespace, name), None)


async def _outage(
    one: World, strike: Strike, due: Mapping[str, list[int]], ended_s: float
) -> Outage:
    """Wait for what was asked for, `due` by service; return how long that took after the fault."""

    async def is_done() -> bool:
        return all(_taken_s(one, name, wanted[-1]) is not None for name, wanted in due.items())

    wrongs = []
    try:
        await one.wait(f"{strike.name}: decided", is_done, PATIENCE_S)
    except NotReached as error:
        wrongs.append(str(error))
    await asyncio.sleep(2 * TICK_S)
    if strike.ends_watches and not await _watches_again(one, ended_s):
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
    return Outage(strike=strike.name, decided_s=decided_s, wrongs=tuple(wrongs))


async def suffer_all(
    on: SharedCluster,
    chosen: Sequence[Strike],
    *,
    side_by_side: int,
    fault_s: float = FAULT_S,
    results: Results | None = None,
) -> AsyncIterator[Outage]:
    """Play them in several lanes, and give each as it ends; those that are kept at once."""
    left: list[tuple[int, Strike]] = []
    for number, strike in enumerate(chosen):
        row = results.get(PART, f"{strike.name} for {fault_s:g} s") if results else None
        if row is None:
            left.append((number, strike))
        else:
            yield Outage(**{**row, "wrongs": tuple(row["wrongs"])})
    ended: asyncio.Queue[Outage] = asyncio.Queue()
    left.reverse()

    async def run_lane() -> None:
        while left:
            async with lane(on) as one:
                await _suffer_in_turn(one, left, fault_s, ended)

    expected = len(left)
    async with asyncio.TaskGroup() as group:
        for _ in range(min(side_by_side, expected)):
            group.create_task(run_lane())
        for _ in range(expected):
            outage = await ended.get()
            if results is not None:
                results.put(PART, f"{outage.strike} for {fault_s:g} s", asdict(outage))
            yield outage


async def _suffer_in_turn(
    one: World, left: list[tuple[int, Strike]], fault_s: float, ended: asyncio.Queue[Outage]
) -> None:
    """Take what is left, one after another, until something goes wrong: then begin a new lane."""
    while left:
        number, strike = left.pop()
        try:
            outage = await suffer(one, number, strike, fault_s)
        except (NotReached, Refused) as error:
            outage = Outage(strike=strike.name, wrongs=(str(error),))
        await ended.put(outage)
        if not outage.holds:
            return


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
