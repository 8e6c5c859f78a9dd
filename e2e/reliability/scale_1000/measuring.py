"""Creates many services on one operator, watches it, and restarts it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

import aiohttp

from bench.figures import Figure
from bench.processes import Process
from cluster.commands import environment
from headroom.controller.scheduling import tick_period
from reliability.fake_kubelet import PODS, SERVICE_LABEL, FakeKubelet
from reliability.operator_process import OperatorProcess
from reliability.scale_1000 import accounts, seeding, sizes
from reliability.scale_1000.accounts import Account
from reliability.scale_1000.addresses import ServiceAddresses
from reliability.scale_1000.sizes import Size
from reliability.scale_1000.status_writes import StatusWrites
from reliability.testbed import SYSTEM, NotReached, SharedCluster
from results import Results

PART = "scale-1000"
WARM_WITHIN_S, WARM_WITHIN_S_PER_SERVICE = 120.0, 0.6
"""The controllers write some forty times for each service; on two cores that are 200 a second."""
DECIDED_WITHIN_S = 300.0
LOOK_EVERY_S = 2.0
"""At what a process has decided; it says itself when that was."""
SETTLE_S, SETTLE_PERIODS, LONGEST_SETTLE_S = 20.0, 6.0, 170.0
"""After the last replica was ready: its signals are whole then, and all has been said."""
WATCHED_PERIODS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The sizes to measure."""

    services: tuple[int, ...] = (10, 100, 1000)
    pods: int = 3
    unrelated: int = 7000
    watch_s: float = 60.0

    def key(self, services: int) -> str:
        """Name what is measured with so many, however many were there before."""
        return f"{services} of {self.pods}, {self.unrelated} of others, {self.watch_s:g} s"


Bar = Callable[[str, int], Callable[[int], object]]
"""Begins a bar with a title and a total; what it returns says how far it has come."""
Tell = Callable[[Sequence[Figure]], object]


@dataclass(slots=True)
class _Stage:
    on: SharedCluster
    wanted: Wanted
    bar: Bar
    port: int
    operator: OperatorProcess
    kubelet: FakeKubelet
    writes: StatusWrites
    made: int = 0


async def measure(
    on: SharedCluster, wanted: Wanted, results: Results, bar: Bar, tell: Tell
) -> Sequence[Figure]:
    """Create services step by step; at each size watch the operator, then restart it.

    Each size is reported and stored at once, so that an interrupted run resumes with the next one.
    """
    found: dict[int, Size] = {}
    for services in wanted.services:
        row = results.get(PART, wanted.key(services))
        if row is not None:
            found[services] = Size.of(row)
            tell(sizes.figures(found[services]))
    missing = [services for services in wanted.services if services not in found]
    if missing:
        async with _pod_pages() as port, _stage(on, wanted, bar, port) as stage:
            for services in missing:
                size = found[services] = await _measure_one(stage, services)
                results.put(PART, wanted.key(services), size.row())
                tell(sizes.figures(size))
    rows = [found[services] for services in wanted.services]
    return (
        *(figure for size in rows for figure in sizes.figures(size)),
        *(sizes.flat(rows[0], size) for size in rows[1:]),
    )


async def _measure_one(stage: _Stage, services: int) -> Size:
    warm_s = await _grow(stage, services)
    await _settle(stage)
    account, written = await _watch(stage)
    load = os.getloadavg()[0]
    first_s, process = await _begin_anew(stage)
    return Size(
        services=services,
        pods=stage.wanted.unrelated + services * stage.wanted.pods,
        seconds=account.seconds,
        cpu_s=account.cpu_s,
        rss_mb=account.rss_mb,
        ticks=account.ticks,
        failed=account.failed,
        late_s=account.late_s(0.99),
        writes=written,
        calls=dict(account.calls),
        warm_s=warm_s,
        first_s=first_s,
        first_cpu_s=process.cpu_s,
        first_rss_mb=process.peak_mb,
        load=load,
    )


async def _grow(stage: _Stage, services: int) -> float:
    """Make services up to this number, and wait until their pods serve and the operator says so."""
    more, pods = range(stage.made, services), stage.wanted.pods
    admin = stage.on.admin
    await seeding.make_namespaces(admin, more, 0 if stage.made else stage.wanted.unrelated)
    if not stage.made:
        advance = stage.bar("unrelated pods", stage.wanted.unrelated)
        await seeding.make_unrelated(admin, stage.wanted.unrelated, advance)
        await stage.operator.start()
    begun_s = time.monotonic()
    advance = stage.bar(f"services, up to {services}", len(more))
    await seeding.make_services(admin, more, stage.port, pods, advance)
    stage.made = services
    await _until(
        stage,
        f"warm pods of {services} services",
        services * pods,
        lambda page: min(services * pods, int(sum(accounts.ready(page).values()))),
        WARM_WITHIN_S + WARM_WITHIN_S_PER_SERVICE * len(more),
    )
    return time.monotonic() - begun_s


async def _settle(stage: _Stage) -> None:
    period_s = tick_period.period_s(2.0, stage.made)
    seconds = round(min(SETTLE_S + SETTLE_PERIODS * period_s, LONGEST_SETTLE_S))
    advance = stage.bar(f"{stage.made} services settle", seconds)
    for second in range(seconds):
        await asyncio.sleep(1.0)
        advance(second + 1)


async def _watch(stage: _Stage) -> tuple[Account, int]:
    """Return what the operator did while nothing changed, and how often status was written."""
    process = Process(stage.operator.pid)
    watch_s = max(stage.wanted.watch_s, _least_s(stage.made))
    advance = stage.bar(f"watching {stage.made} services", int(watch_s))
    before = accounts.read(await _metrics(stage.operator))
    begun_s, used_s, rss_mb = time.monotonic(), process.cpu_s, 0.0
    while (passed_s := time.monotonic() - begun_s) < watch_s:
        await asyncio.sleep(1.0)
        rss_mb = max(rss_mb, process.rss_mb)
        advance(int(passed_s) + 1)
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


def _least_s(services: int) -> float:
    """A whole turn of status where writes are counted against a bound; else some ticks of all."""
    if services <= sizes.PROMISED_SERVICES:
        return sizes.turn_s(services)
    return WATCHED_PERIODS * tick_period.period_s(2.0, services)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Used:
    cpu_s: float
    peak_mb: float


async def _begin_anew(stage: _Stage) -> tuple[float, _Used]:
    """Restart the operator; return when the last service was decided, by its own metrics."""
    await stage.operator.stop()
    await asyncio.sleep(3.0)
    begun_s = time.time()
    await stage.operator.start()
    first_s: dict[str, float] = {}

    def decided(page: str) -> int:
        for service, moment_s in accounts.decided_s(page).items():
            first_s.setdefault(service, moment_s)
        return len(first_s)

    title = f"first decisions of {stage.made} after a restart"
    await _until(stage, title, stage.made, decided, DECIDED_WITHIN_S)
    process = Process(stage.operator.pid)
    used = _Used(cpu_s=process.cpu_s, peak_mb=process.peak_mb)
    return max(first_s.values()) - begun_s, used


async def _until(
    stage: _Stage, title: str, wanted: int, counted: Callable[[str], int], within_s: float
) -> None:
    """Look at the operator's metrics until they count as many; raise NotReached."""
    advance, begun_s, seen = stage.bar(title, wanted), time.monotonic(), 0
    while seen < wanted:
        await asyncio.sleep(LOOK_EVERY_S)
        if time.monotonic() - begun_s > within_s:
            said = stage.operator.said()[-2000:]
            pods = f"{stage.kubelet.ready} pods made ready"
            raise NotReached(f"{title}: {seen} of {wanted} in {within_s:.0f} s, {pods}: {said}")
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):  # it does not listen yet
            seen = counted(await _metrics(stage.operator))
            advance(seen)


@contextlib.asynccontextmanager
async def _stage(on: SharedCluster, wanted: Wanted, bar: Bar, port: int) -> AsyncIterator[_Stage]:
    operator = OperatorProcess(
        on.credentials,
        on.scratch / "scale_1000.log",
        tick="2s",
        lease_namespace=SYSTEM,
    )
    kubelet = FakeKubelet(
        *(on.admin, ServiceAddresses(), f"{PODS}?labelSelector={SERVICE_LABEL}"),
        start_s=0.0,
        drain_s=0.0,
        at_once=16,
    )
    stage = _Stage(on, wanted, bar, port, operator, kubelet, StatusWrites(on.admin))
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one.run()) for one in (stage.kubelet, stage.writes)]
            yield stage
            for task in tasks:
                task.cancel()
    finally:
        await operator.kill()


@contextlib.asynccontextmanager
async def _pod_pages() -> AsyncIterator[int]:
    """Start what answers for the pods; it ends with the block, and with this process."""
    process = await asyncio.create_subprocess_exec(
        *(
            "setpriv",
            "--pdeathsig",
            "KILL",
            sys.executable,
            "-m",
            "reliability.scale_1000.fake_pods",
        ),
        stdout=asyncio.subprocess.PIPE,
        env=environment({}),
    )
    assert process.stdout is not None
    try:
        yield int(await process.stdout.readline())
    finally:
        with contextlib.suppress(ProcessLookupError):  # it ended with the interrupted process
            process.kill()
        await process.wait()


async def _metrics(operator: OperatorProcess) -> str:
    url = f"http://127.0.0.1:{operator.port}/metrics"
    timeout = aiohttp.ClientTimeout(total=30.0)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as answer:
        return await answer.text()
