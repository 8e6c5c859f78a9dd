"""Creates many services on one operator, watches it, and restarts it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence

from bench.figures import Figure
from bench.processes import Process
from headroom.controller.scheduling import tick_period
from reliability.scale_1000 import accounts, sizes
from reliability.scale_1000.accounts import Account
from reliability.scale_1000.growth import grow, settle
from reliability.scale_1000.restarting import restart_operator
from reliability.scale_1000.sizes import Size
from reliability.scale_1000.stage import Bar, Stage, Wanted, metrics, pod_pages, staged
from reliability.testbed.testbed import SharedCluster
from results import Results

PART = "scale-1000"
WATCHED_PERIODS = 2.0
Tell = Callable[[Sequence[Figure]], object]


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
        async with pod_pages() as port, staged(on, wanted, bar, port) as stage:
            for services in missing:
                size = found[services] = await _measure_one(stage, services)
                results.put(PART, wanted.key(services), size.row())
                tell(sizes.figures(size))
    rows = [found[services] for services in wanted.services]
    return (
        *(figure for size in rows for figure in sizes.figures(size)),
        *(sizes.flat(rows[0], size) for size in rows[1:]),
    )


async def _measure_one(stage: Stage, services: int) -> Size:
    warm_s = await grow(stage, services)
    await settle(stage)
    account, written = await _watch(stage)
    load = os.getloadavg()[0]
    first_s, process = await restart_operator(stage)
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


async def _watch(stage: Stage) -> tuple[Account, int]:
    """Return what the operator did while nothing changed, and how often status was written."""
    process = Process(stage.operator.pid)
    watch_s = max(stage.wanted.watch_s, _least_s(stage.made))
    advance = stage.bar(f"watching {stage.made} services", int(watch_s))
    before = accounts.read(await metrics(stage.operator))
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
        after=accounts.read(await metrics(stage.operator)),
    )
    return account, written


def _least_s(services: int) -> float:
    """A whole turn of status where writes are counted against a bound; else some ticks of all."""
    if services <= sizes.PROMISED_SERVICES:
        return sizes.turn_s(services)
    return WATCHED_PERIODS * tick_period.period_s(2.0, services)
