"""One model's cache, with a device whose results come from the test."""

from __future__ import annotations

import asyncio
from array import array
from dataclasses import dataclass, field

from headroom_server.caching.cache import MAX_JOINED_BYTES, Cache, CacheRequest
from headroom_server.caching.flights import Source
from headroom_server.caching.levels import LevelOptions
from headroom_server.caching.store import GuardedStore
from headroom_server.connection import Connection
from headroom_server.device.batches import Outputs
from headroom_server.engine import Work
from support.memory_store import MemoryStore
from support.server_world import SIGNATURE, until


@dataclass
class Device:
    """Each execution waits for its result from the test."""

    executions: list[asyncio.Future[Outputs]] = field(default_factory=list)

    async def execute(self) -> Outputs:
        self.executions.append(asyncio.get_running_loop().create_future())
        return await self.executions[-1]

    async def begun(self, count: int) -> None:
        await until(lambda: len(self.executions) == count)

    def answer(self, index: int, value: float = 3.0) -> None:
        self.executions[index].set_result({"sum": array("d", [value])})

    def fail(self, index: int, error: Exception) -> None:
        self.executions[index].set_exception(error)


class Bench:
    """A cache, a device, and requests whose ends are recorded."""

    def __init__(
        self,
        store: MemoryStore | None = None,
        *,
        max_bytes: int = 1 << 20,
        ttl_s: float = 60.0,
        max_joined_bytes: int = MAX_JOINED_BYTES,
    ) -> None:
        self.now_s = 0.0
        self.device = Device()
        self.store = store
        self.guarded = None if store is None else GuardedStore(store, self.clock)
        options = LevelOptions(max_bytes, ttl_s, self.clock, self.guarded)
        self.cache = Cache("m/1", options, max_joined_bytes)
        self.cache.serve(SIGNATURE)

    def clock(self) -> float:
        return self.now_s

    def ask(
        self,
        *x: float,
        due_s: float | None = None,
        connection: Connection | None = None,
    ) -> asyncio.Task[tuple[Outputs, Source]]:
        work = Work(1, {"x": array("d", x or (1, 2))})
        asked = CacheRequest(work, due_s, connection or Connection())
        return asyncio.create_task(self.cache.outputs(asked, self.device.execute))

    def answers(self) -> dict[str, int]:
        return {str(source): n for source, n in self.cache.counts().by_source.items() if n}


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)
