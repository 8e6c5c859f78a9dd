"""Services by the thousand on one operator: made, watched, and the operator begun anew."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

import aiohttp

from bench.figures import Figure, at_most, shown
from bench.processes import Process
from cluster.commands import environment
from headroom.controller import pace
from reliability.ground import SYSTEM, Ground, NotReached
from reliability.operator_process import OperatorProcess
from reliability.thousand import accounts, seeding
from reliability.thousand.accounts import Account
from reliability.thousand.attendant import Attendant, StatusWrites

FIRST_DECISIONS_S = 20.0
CORES, RSS_MB, LATE_S = 0.5, 250.0, 1.0
PROMISED_SERVICES = 1000
FLAT = 1.25
"""Cost per service and tick at the most services over that at the fewest."""
READY_WITHIN_S = 600.0
LOOK_EVERY_S = 2.0
"""At what a new process has decided; it says itself when that was."""
SETTLE_S, SETTLE_PERIODS = 20.0, 6.0
"""After the last replica was ready: its signals are whole then, and all has been said."""
_HEARTBEAT_S, _WRITES_PER_S = 60.0, 4.0
"""DESIGN: status is written on change, else every max(60 s, services / 4 s)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much of everything."""

    services: tuple[int, ...] = (10, 100, 1000)
    pods: int = 3
    foreign: int = 7000
    watch_s: float = 60.0


Bar = Callable[[str, int], Callable[[], object]]
"""Begins a bar with a title and a total; what it returns advances it."""
Tell = Callable[[Sequence[Figure]], object]


@dataclass(slots=True)
class _Stage:
    on: Ground
    sizes: Sizes
    bar: Bar
    port: int
    operator: OperatorProcess
    attendant: Attendant
    writes: StatusWrites
    made: int = 0
    figures: list[Figure] = field(default_factory=list)


async def measure(on: Ground, sizes: Sizes, bar: Bar, tell: Tell) -> Sequence[Figure]:
    """Make services step by step, watch the operator at each, then begin it anew.

    Each step is told at once: what is interrupted has said what it found.
    """
    async with _farm() as port, _stage(on, sizes, bar, port) as stage:
        accounts_ = []
        for services in sizes.services:
            await _grow(stage, services)
            account, written = await _watch(stage)
            accounts_.append(account)
            found = _figures(account, written)
            tell(found)
            stage.figures += found
        stage.figures.append(await _begin_anew(stage))
        first, last = accounts_[0], accounts_[-1]
        ratio = last.cpu_per_tick_ms / first.cpu_per_tick_ms
        name = f"CPU per service and tick, {last.services} services over {first.services}"
        stage.figures.append(at_most(name, ratio, FLAT, "x", 2))
        return stage.figures


def _figures(account: Account, written: int) -> Sequence[Figure]:
    services, minutes = account.services, account.seconds / 60.0
    at = f"{services} services"
    bound = services * minutes * 60.0 / max(_HEARTBEAT_S, services / _WRITES_PER_S)
    calls = ", ".join(
        f"{verb} {number / account.seconds:.1f}/s"
        for verb, number in sorted(account.calls.items(), key=lambda item: -item[1])
    )
    promised = services <= PROMISED_SERVICES
    bounded = at_most if promised else _beyond
    return (
        bounded(f"{at}: share of a core", account.cores, CORES, "", 3),
        bounded(f"{at}: resident memory", account.rss_mb, RSS_MB, " MB", 0),
        bounded(f"{at}: begun late, p99", account.late_s(0.99), LATE_S, " s", 3),
        bounded(f"{at}: status writes a minute", written / minutes, bound / minutes + 2, "", 1),
        shown(f"{at}: CPU per service and tick", f"{account.cpu_per_tick_ms:.2f} ms"),
        shown(f"{at}: ticks a second", f"{account.ticks / account.seconds:.1f}"),
        shown(f"{at}: ticks that failed", f"{account.failed:.0f}"),
        shown(f"{at}: API calls", calls),
        shown(f"{at}: load average", f"{os.getloadavg()[0]:.1f}"),
    )


def _beyond(name: str, value: float, bound: float, unit: str, digits: int = 1) -> Figure:
    """Show what nothing is promised about."""
    return shown(name, f"{value:.{digits}f}{unit}")


async def _grow(stage: _Stage, services: int) -> None:
    """Make services up to this number, and wait until their pods serve and are known to."""
    more, pods = range(stage.made, services), stage.sizes.pods
    admin = stage.on.admin
    await seeding.make_namespaces(admin, more, stage.sizes.foreign if not stage.made else 0)
    if not stage.made:
        advance = stage.bar("pods of others", stage.sizes.foreign)
        await seeding.make_foreign(admin, stage.sizes.foreign, advance)
        await stage.operator.start()
    advance = stage.bar(f"services, up to {services}", len(more))
    await seeding.make_services(admin, more, stage.port, pods, advance)
    stage.made = services
    advance = stage.bar(f"services of {pods} warm pods", services)
    shown_ = 0
    begun_s = time.monotonic()
    while (warm := sum(1 for n in stage.writes.ready.values() if n >= pods)) < services:
        if time.monotonic() - begun_s > READY_WITHIN_S:
            said = stage.operator.said()[-2000:]
            raise NotReached(
                f"{warm} of {services} services warm, {stage.attendant.ready} pods: {said}"
            )
        for _ in range(warm - shown_):
            advance()
        shown_ = max(shown_, warm)
        await asyncio.sleep(0.2)
    for _ in range(services - shown_):
        advance()
    await asyncio.sleep(SETTLE_S + SETTLE_PERIODS * pace.period_s(2.0, services))


async def _watch(stage: _Stage) -> tuple[Account, int]:
    """Return what the operator did while nobody did anything, and how often status was written."""
    process = Process(stage.operator.pid)
    advance = stage.bar(f"watching {stage.made} services", int(stage.sizes.watch_s))
    before = accounts.read(await _metrics(stage.operator))
    begun_s, used_s, rss_mb = time.monotonic(), process.cpu_s, 0.0
    while time.monotonic() - begun_s < stage.sizes.watch_s:
        await asyncio.sleep(1.0)
        rss_mb = max(rss_mb, process.rss_mb)
        advance()
    seconds, cpu_s = time.monotonic() - begun_s, process.cpu_s - used_s
    written = stage.writes.since(begun_s)
    account = Account(
        services=stage.made,
        seconds=seconds,
        cpu_s=cpu_s,
        rss_mb=rss_mb,
        before=before,
        after=accounts.read(await _metrics(stage.operator)),
    )
    return account, written


async def _begin_anew(stage: _Stage) -> Figure:
    """Stop the operator, start it, and wait until every service is decided, by its own metrics."""
    await stage.operator.stop()
    await asyncio.sleep(3.0)
    begun_s = time.time()
    await stage.operator.start()
    advance = stage.bar("first decisions of a new process", stage.made)
    first_s: dict[str, float] = {}
    while len(first_s) < stage.made:
        await asyncio.sleep(LOOK_EVERY_S)
        if time.time() - begun_s > READY_WITHIN_S:
            raise NotReached(f"{len(first_s)} of {stage.made} services decided after a new start")
        with contextlib.suppress(aiohttp.ClientError):  # it does not listen yet
            for service, moment_s in accounts.decided_s(await _metrics(stage.operator)).items():
                if service not in first_s:
                    first_s[service] = moment_s
                    advance()
    took_s = max(first_s.values()) - begun_s
    pods = stage.sizes.foreign + stage.made * stage.sizes.pods
    name = f"{stage.made} services, {pods} pods: from start to the last first decision"
    bounded = at_most if stage.made <= PROMISED_SERVICES else _beyond
    return bounded(name, took_s, FIRST_DECISIONS_S, " s")


@contextlib.asynccontextmanager
async def _stage(on: Ground, sizes: Sizes, bar: Bar, port: int) -> AsyncIterator[_Stage]:
    operator = OperatorProcess(
        on.credentials,
        on.scratch / "thousand.log",
        tick="2s",
        lease_namespace=SYSTEM,
    )
    stage = _Stage(on, sizes, bar, port, operator, Attendant(on.admin), StatusWrites(on.admin))
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one.run()) for one in (stage.attendant, stage.writes)]
            yield stage
            for task in tasks:
                task.cancel()
    finally:
        await operator.kill()


@contextlib.asynccontextmanager
async def _farm() -> AsyncIterator[int]:
    """Start what answers for the pods; it ends with the block, and with this process."""
    process = await asyncio.create_subprocess_exec(
        *("setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "reliability.thousand.farm"),
        stdout=asyncio.subprocess.PIPE,
        env=environment({}),
    )
    assert process.stdout is not None
    try:
        yield int(await process.stdout.readline())
    finally:
        process.kill()
        await process.wait()


async def _metrics(operator: OperatorProcess) -> str:
    url = f"http://127.0.0.1:{operator.port}/metrics"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return await answer.text()
