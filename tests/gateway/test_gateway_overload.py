"""Load above capacity: requests that a real Envoy admits are answered in time."""

from __future__ import annotations

import asyncio
import time

import pytest
from aiohttp import web

from headroom.gateway.runtime import in_flight_per_replica
from headroom.scaling.values.observation import CostModel
from support.fakes_gateway import Gateway, Replica, service, url

pytestmark = pytest.mark.clock

COST = CostModel(fixed_s=0.08, per_item_s=0.03, max_batch=4)
"""Full batches of 4 in 0.2 s: 20 requests per second."""
TARGET_S = 0.5
OVERLOAD, LASTS_S = 1.5, 4.0


class Batching:
    """Answers in batches, in the order of arrival, as fast as the cost model says."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[asyncio.Future[None]] = asyncio.Queue()

    async def run(self) -> None:
        while True:
            batch = [await self._waiting.get()]
            while len(batch) < COST.max_batch and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            await asyncio.sleep(COST.batch_s(len(batch)))
            for one in batch:
                if not one.done():
                    one.set_result(None)

    async def answer(self, request: web.Request) -> web.Response:
        await request.read()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait(done)
        await done
        return web.Response(text="ok")


async def _share_in_time(front: Gateway, started: list[Replica], bound: int) -> float:
    servers = [Batching() for _ in range(2)]
    running = [asyncio.create_task(server.run()) for server in servers]
    started += [await Replica(server.answer).start() for server in servers]
    one = service()
    replicas = [replica.endpoint for replica in started[-2:]]
    await front.tell(one, replicas={one.key: replicas}, bound=bound * len(replicas))
    await asyncio.sleep(0.5)  # until Envoy has the bound

    async def ask() -> bool:
        begun_s = time.monotonic()
        async with front.client.post(url(one), data=b"x") as answered:
            await answered.read()
            return answered.status == 200 and time.monotonic() - begun_s <= TARGET_S

    rate_rps = OVERLOAD * len(replicas) * COST.full_batch_rps
    asked = []
    for _ in range(int(rate_rps * LASTS_S)):
        asked.append(asyncio.create_task(ask()))
        await asyncio.sleep(1.0 / rate_rps)
    in_time = await asyncio.gather(*asked)
    for task in running:
        task.cancel()
    return sum(in_time) / len(in_time)


async def test_overload_admits_what_ends_in_time_and_a_wider_bound_makes_all_late(
    front: Gateway, started: list[Replica]
) -> None:
    """At 1.5 x the capacity two thirds can be in time; 0.5 s / 0.2 s: two batches, 8 requests."""
    bound = in_flight_per_replica(COST, TARGET_S)
    assert bound == 8
    narrow = await _share_in_time(front, started, bound)
    wide = await _share_in_time(front, started, 5 * bound)
    assert narrow > 0.5 > wide
