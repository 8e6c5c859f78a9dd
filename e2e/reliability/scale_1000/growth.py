"""Makes services until there are as many as wanted, and waits until they are warm and settled."""

from __future__ import annotations

import asyncio
import time

from headroom.controller.scheduling import tick_period
from reliability.scale_1000 import accounts, seeding
from reliability.scale_1000.stage import Stage, until

WARM_WITHIN_S, WARM_WITHIN_S_PER_SERVICE = 120.0, 0.6
"""The controllers write some forty times for each service; on two cores that are 200 a second."""
SETTLE_S, SETTLE_PERIODS, LONGEST_SETTLE_S = 20.0, 6.0, 170.0
"""After the last replica was ready: its signals are whole then, and all has been said."""


async def grow(stage: Stage, services: int) -> float:
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
    await until(
        stage,
        f"warm pods of {services} services",
        services * pods,
        lambda page: min(services * pods, int(sum(accounts.ready(page).values()))),
        WARM_WITHIN_S + WARM_WITHIN_S_PER_SERVICE * len(more),
    )
    return time.monotonic() - begun_s


async def settle(stage: Stage) -> None:
    """Wait until the signals of all services are whole."""
    period_s = tick_period.period_s(2.0, stage.made)
    seconds = round(min(SETTLE_S + SETTLE_PERIODS * period_s, LONGEST_SETTLE_S))
    advance = stage.bar(f"{stage.made} services settle", seconds)
    for second in range(seconds):
        await asyncio.sleep(1.0)
        advance(second + 1)
