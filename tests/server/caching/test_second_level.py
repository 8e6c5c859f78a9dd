"""A cache's second level: shared answers, damaged values, and a store that fails or hangs."""

from __future__ import annotations

import time
from array import array

import pytest

from headroom_server.caching.flights import Source
from headroom_server.caching.store import LOOKUP_S, StoredValue
from headroom_server.connection import Connection
from headroom_server.errors import (
    DisconnectedError,
)
from support.cache_bench import Bench, turns
from support.memory_store import MemoryStore
from support.server_world import until

pytestmark = pytest.mark.clock


async def with_store(store: MemoryStore) -> Bench:
    bench = Bench(store)
    assert bench.guarded is not None
    guarded = bench.guarded
    await until(lambda: guarded.enabled)
    return bench


async def computed_and_stored(bench: Bench, store: MemoryStore) -> None:
    """Let one replica compute an answer, and wait until the second level has it."""
    first = bench.ask()
    await bench.device.begun(1)
    bench.device.answer(0)
    await first
    await until(lambda: bool(store.values))


async def test_second_level_shares_answers_between_replicas() -> None:
    store = MemoryStore()
    one, other = await with_store(store), await with_store(store)
    await computed_and_stored(one, store)
    outputs, source = await other.ask()
    assert (outputs, source) == ({"sum": array("d", [3.0])}, Source.STORE)
    assert (await other.ask())[1] is Source.MEMORY
    assert not other.device.executions


async def test_second_level_value_keeps_its_age() -> None:
    store = MemoryStore()
    one, other = await with_store(store), await with_store(store)
    await computed_and_stored(one, store)
    store.values = {key: found._replace(left_s=2.0) for key, found in store.values.items()}
    assert (await other.ask())[1] is Source.STORE
    other.now_s, store.values = 2.0, {}
    again = other.ask()
    await other.device.begun(1)
    other.device.answer(0)
    assert (await again)[1] is Source.COMPUTED


async def test_damaged_second_level_value_costs_one_execution() -> None:
    store = MemoryStore()
    one, other = await with_store(store), await with_store(store)
    await computed_and_stored(one, store)
    store.values = {key: StoredValue(b"garbage", 60.0) for key in store.values}
    again = other.ask()
    await other.device.begun(1)
    other.device.answer(0, 3.0)
    assert (await again)[1] is Source.COMPUTED


@pytest.mark.parametrize("error", [OSError("refused"), ValueError("not the protocol")])
async def test_failing_second_level_is_paused_and_fails_no_request(error: Exception) -> None:
    store = MemoryStore()
    bench = await with_store(store)
    store.error = error
    for index in range(6):
        request = bench.ask(index, 0)
        await bench.device.begun(index + 1)
        bench.device.answer(index)
        assert (await request)[1] is Source.COMPUTED
    counts = bench.cache.counts()
    assert (counts.levels.store_enabled, counts.levels.store_failures) == (False, store.asked)
    assert 3 <= store.asked <= 4  # lookups and writes both count; then no request asks
    store.error = None
    bench.now_s = 1.0  # the pause is over: the next request has it probed, and waits for nothing
    request = bench.ask(9, 9)
    await bench.device.begun(7)
    bench.device.answer(6)
    await request
    await until(lambda: bench.cache.counts().levels.store_enabled)


async def test_hanging_second_level_delays_requests_by_its_timeout() -> None:
    store = MemoryStore()
    bench = await with_store(store)
    store.hangs = True
    began_s = time.perf_counter()
    request = bench.ask()
    await bench.device.begun(1)
    assert LOOKUP_S * 0.9 < time.perf_counter() - began_s < LOOKUP_S + 0.1
    bench.device.answer(0)
    await request


async def test_client_leaving_during_lookup_causes_no_execution() -> None:
    store = MemoryStore(hangs=True)
    bench, connection = await with_store(store), Connection()
    request = bench.ask(connection=connection)
    await turns()
    connection.lost()
    with pytest.raises(DisconnectedError):
        await request
    assert not bench.device.executions
    await bench.cache.wait_idle()
