"""One model's cache: which request executes, which wait, and how the waiting ones end."""

from __future__ import annotations

import asyncio
import time
from array import array
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom_server.caching.cache import MAX_JOINED_BYTES, Cache, CacheRequest
from headroom_server.caching.flights import Source
from headroom_server.caching.levels import LevelOptions
from headroom_server.caching.store import LOOKUP_S, GuardedStore, StoredValue
from headroom_server.connection import Connection
from headroom_server.device.execution import Outputs
from headroom_server.engine import Work
from headroom_server.errors import (
    DisconnectedError,
    ExpiredError,
    FailedError,
    QueueFullError,
    RequestError,
)
from server_world import SIGNATURE, until

pytestmark = pytest.mark.clock

FULL = QueueFullError("full", retry_after_s=1)


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


@dataclass
class MemoryStore:
    """A second level without a network; can fail and hang."""

    values: dict[bytes, StoredValue] = field(default_factory=dict)
    error: Exception | None = None
    hangs: bool = False
    asked: int = 0

    async def _turn(self) -> None:
        self.asked += 1
        if self.hangs:
            await asyncio.sleep(60)
        if self.error is not None:
            raise self.error

    async def get(self, key: bytes) -> StoredValue | None:
        await self._turn()
        return self.values.get(key)

    async def put(self, key: bytes, value: bytes, ttl_s: float) -> None:
        await self._turn()
        self.values[key] = StoredValue(value, ttl_s)

    async def ping(self) -> None:
        if self.error is not None:
            raise self.error

    async def close(self) -> None:
        await self._turn()


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


async def test_second_equal_request_is_answered_from_memory() -> None:
    bench = Bench()
    first = bench.ask()
    await turns()
    bench.device.answer(0)
    assert (await first)[1] is Source.COMPUTED
    outputs, source = await bench.ask()
    assert (outputs["sum"], source) == (array("d", [3.0]), Source.MEMORY)
    assert bench.answers() == {"computed": 1, "memory": 1}
    counts = bench.cache.counts()
    assert (counts.levels.entries, counts.levels.size > 8, counts.levels.store_failures) == (
        1,
        True,
        None,
    )


async def test_cached_answer_expires() -> None:
    bench = Bench(ttl_s=5.0)
    first = bench.ask()
    await turns()
    bench.device.answer(0)
    await first
    bench.now_s = 4.9
    assert (await bench.ask())[1] is Source.MEMORY
    bench.now_s = 5.0
    again = bench.ask()
    await bench.device.begun(2)
    bench.device.answer(1)
    assert (await again)[1] is Source.COMPUTED


async def test_equal_requests_share_one_execution() -> None:
    bench = Bench()
    equal = [bench.ask() for _ in range(4)]
    other = bench.ask(5, 6)
    await turns()
    assert len(bench.device.executions) == 2
    bench.device.answer(0)
    bench.device.answer(1, 11.0)
    assert [source for _, source in await asyncio.gather(*equal)] == ["computed", *["flight"] * 3]
    assert (await other)[0]["sum"][0] == 11.0
    await bench.cache.wait_idle()


async def test_failure_is_neither_shared_nor_cached() -> None:
    bench = Bench()
    requests = [bench.ask() for _ in range(3)]
    await turns()
    bench.device.fail(0, FailedError("poisoned"))
    await bench.device.begun(3)  # each of the other two on its own
    bench.device.fail(1, FailedError("poisoned"))
    bench.device.answer(2)
    ends = await asyncio.gather(*requests, return_exceptions=True)
    assert [type(end) for end in ends] == [FailedError, FailedError, tuple]
    assert (await bench.ask())[1] is Source.MEMORY  # the one that went well is kept
    await bench.cache.wait_idle()


async def test_failure_without_followers_leaves_no_flight() -> None:
    bench = Bench()
    first = bench.ask()
    await turns()
    bench.device.fail(0, FailedError("no"))
    with pytest.raises(FailedError):
        await first
    await bench.cache.wait_idle()
    assert bench.cache.counts().levels.entries == 0


@pytest.mark.parametrize("error", [DisconnectedError(), ExpiredError("late"), FULL])
async def test_leader_that_expires_or_leaves_hands_over(error: RequestError) -> None:
    bench = Bench()
    requests = [bench.ask() for _ in range(3)]
    await turns()
    bench.device.fail(0, error)
    await bench.device.begun(2)
    await turns()
    assert len(bench.device.executions) == 2  # one leads, the last one waits on
    bench.device.answer(1)
    ends = await asyncio.gather(*requests, return_exceptions=True)
    assert ends[0] is error
    assert [end[1] for end in ends[1:] if isinstance(end, tuple)] == ["computed", "flight"]


async def test_cancelled_leader_hands_over() -> None:
    bench = Bench()
    leader, follower = bench.ask(), bench.ask()
    await turns()
    leader.cancel()
    await bench.device.begun(2)
    bench.device.answer(1)
    assert (await follower)[1] is Source.COMPUTED
    await bench.cache.wait_idle()


async def test_follower_cancelled_on_promotion_passes_it_on() -> None:
    bench = Bench()
    leader, second, third = bench.ask(), bench.ask(), bench.ask()
    await turns()
    leader.add_done_callback(lambda _: second.cancel())
    bench.device.fail(0, DisconnectedError())
    await bench.device.begun(2)
    bench.device.answer(1)
    assert (await third)[1] is Source.COMPUTED
    ends = await asyncio.gather(leader, second, return_exceptions=True)
    assert [type(end) for end in ends] == [DisconnectedError, asyncio.CancelledError]
    await bench.cache.wait_idle()


async def test_follower_that_left_is_not_promoted() -> None:
    bench, connection = Bench(), Connection()
    leader, left, heir = bench.ask(), bench.ask(connection=connection), bench.ask()
    await turns()
    connection.lost()
    await asyncio.wait((left,))
    bench.device.fail(0, DisconnectedError())
    await bench.device.begun(2)
    bench.device.answer(1)
    assert (await heir)[1] is Source.COMPUTED
    ends = await asyncio.gather(leader, left, return_exceptions=True)
    assert [type(end) for end in ends] == [DisconnectedError, DisconnectedError]


async def test_follower_can_leave_and_expire() -> None:
    bench = Bench()
    connection = Connection()
    leader = bench.ask()
    leaves, expires = bench.ask(connection=connection), bench.ask(due_s=0.01)
    await turns()
    connection.lost()
    with pytest.raises(DisconnectedError):
        await leaves
    with pytest.raises(ExpiredError):
        await expires
    bench.device.answer(0)
    assert (await leader)[1] is Source.COMPUTED
    assert connection.on_lost is None


async def test_follower_beyond_the_byte_limit_goes_through_admission() -> None:
    bench = Bench(max_joined_bytes=16)  # one follower of two FP64
    requests = [bench.ask() for _ in range(3)]
    await turns()
    assert len(bench.device.executions) == 2
    for index in range(2):
        bench.device.answer(index)
    sources = [source for _, source in await asyncio.gather(*requests)]
    assert sources == [Source.COMPUTED, Source.FLIGHT, Source.COMPUTED]


async def test_cache_is_idle_after_the_last_promoted_follower() -> None:
    bench = Bench()
    leader, follower = bench.ask(), bench.ask()
    await turns()
    empty = asyncio.create_task(bench.cache.wait_idle())
    bench.device.fail(0, DisconnectedError())
    await bench.device.begun(2)
    assert not empty.done()
    bench.device.answer(1)
    await empty
    await asyncio.gather(leader, follower, return_exceptions=True)


# ---- the second level


async def with_store(store: MemoryStore) -> Bench:
    bench = Bench(store)
    assert bench.guarded is not None
    guarded = bench.guarded
    await until(lambda: guarded.asked)
    return bench


async def test_second_level_shares_answers_between_replicas() -> None:
    store = MemoryStore()
    one, other = await with_store(store), await with_store(store)
    first = one.ask()
    await one.device.begun(1)
    one.device.answer(0)
    await first
    await until(lambda: bool(store.values))
    outputs, source = await other.ask()
    assert (outputs, source) == ({"sum": array("d", [3.0])}, Source.STORE)
    assert (await other.ask())[1] is Source.MEMORY
    assert not other.device.executions


async def test_second_level_value_keeps_its_age() -> None:
    store = MemoryStore()
    one, other = await with_store(store), await with_store(store)
    first = one.ask()
    await one.device.begun(1)
    one.device.answer(0)
    await first
    await until(lambda: bool(store.values))
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
    first = one.ask()
    await one.device.begun(1)
    one.device.answer(0)
    await first
    await until(lambda: bool(store.values))
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
    assert (counts.levels.store_asked, counts.levels.store_failures) == (False, store.asked)
    assert 3 <= store.asked <= 4  # lookups and writes both count; then nobody asks
    store.error = None
    bench.now_s = 1.0  # the pause is over: the next request has it probed, and waits for nothing
    request = bench.ask(9, 9)
    await bench.device.begun(7)
    bench.device.answer(6)
    await request
    await until(lambda: bench.cache.counts().levels.store_asked)


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


# ---- whatever happens


STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "answer", "fail", "leave", "cancel"]), st.integers(0, 9)),
    max_size=25,
)


@settings(max_examples=150)
@given(STEPS)
def test_flights_end_and_execute_one_at_a_time(
    steps: list[tuple[str, int]],
) -> None:
    asyncio.run(_play(steps))


async def _play(steps: list[tuple[str, int]]) -> None:
    bench = Bench(max_bytes=0)  # nothing is kept: who comes joins a flight or begins one
    requests: list[asyncio.Task[tuple[Outputs, Source]]] = []
    failed = False
    for step, index in [*steps, *[("answer", 0)] * len(steps)]:
        open_ = [one for one in bench.device.executions if not one.done()]
        if step == "ask":
            requests.append(bench.ask())
        elif step == "cancel" and requests:
            requests[index % len(requests)].cancel()
        elif open_ and step != "cancel":
            execution = open_[index % len(open_)]
            if step == "answer":
                execution.set_result({"sum": array("d", [3.0])})
            else:
                failed = failed or step == "fail"
                error = FailedError("no") if step == "fail" else DisconnectedError()
                execution.set_exception(error)
        await turns(index % 4)  # also in the midst of a handover
        if not failed:
            assert sum(not one.done() for one in bench.device.executions) <= 1
    for _ in range(100):  # a turn that is handed over begins an execution of its own
        for execution in bench.device.executions:
            if not execution.done():
                execution.set_result({"sum": array("d", [3.0])})
        await turns()
    assert all(request.done() for request in requests)
    ends = await asyncio.gather(*requests, return_exceptions=True)
    allowed = (tuple, FailedError, DisconnectedError, asyncio.CancelledError)
    assert all(isinstance(end, allowed) for end in ends)
    await asyncio.wait_for(bench.cache.wait_idle(), 5)
