"""One model's cache: one of equal requests executes, the others wait for it."""

from __future__ import annotations

import asyncio
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom_server.caching.flights import Source
from headroom_server.connection import Connection
from headroom_server.device.batches import Outputs
from headroom_server.errors import (
    DisconnectedError,
    ExpiredError,
    FailedError,
    QueueFullError,
    RequestError,
)
from support.cache_bench import Bench, turns

pytestmark = pytest.mark.clock


FULL = QueueFullError("full", retry_after_s=1)


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
