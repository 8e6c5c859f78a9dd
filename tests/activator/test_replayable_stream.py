"""A call's messages are read once and replayed until a replica starts to answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from headroom.activator.replayable_stream import IDLE_S, IdleStreamError, ReplayableStream
from headroom.fair_slots import FairSlots
from support.virtual_time import VirtualTimeLoop

pytestmark = pytest.mark.clock


def spoken(*stream: bytes) -> tuple[AsyncIterator[bytes], asyncio.Queue[bytes | None]]:
    """Yield these messages, then those put into the queue; None ends the stream."""
    more: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def said() -> AsyncIterator[bytes]:
        for word in stream:
            yield word
        while (later := await more.get()) is not None:
            yield later

    return said(), more


async def test_each_attempt_replays_all_messages() -> None:
    said, more = spoken(b"a", b"b")
    stream = ReplayableStream(said, lambda _: True)
    more.put_nowait(None)
    for _ in range(3):
        assert [word async for word in stream.replay()] == [b"a", b"b"]
    assert stream.repeatable


async def test_cancelled_attempt_loses_no_message() -> None:
    said, more = spoken(b"a")
    stream = ReplayableStream(said, lambda _: True)
    first = stream.replay()
    assert await anext(first) == b"a"
    waiting = asyncio.ensure_future(anext(first))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    second = stream.replay()
    assert await anext(second) == b"a"
    more.put_nowait(b"b")
    assert await anext(second) == b"b"
    more.put_nowait(None)
    assert [word async for word in second] == []


async def test_messages_are_discarded_once_an_answer_starts() -> None:
    said, more = spoken(b"a", b"b")
    stream = ReplayableStream(said, lambda _: True)
    heard = stream.replay()
    assert await anext(heard) == b"a"
    stream.begun()
    assert not stream.repeatable
    assert await anext(heard) == b"b"
    more.put_nowait(b"c")
    more.put_nowait(None)
    assert [word async for word in heard] == [b"c"]


async def test_messages_above_the_bound_are_not_replayed() -> None:
    said, more = spoken(b"aaaa", b"bb")
    left = 5

    def keep(size: int) -> bool:
        nonlocal left
        left -= size
        return left >= 0

    stream = ReplayableStream(said, keep)
    more.put_nowait(None)
    assert [word async for word in stream.replay()] == [b"aaaa", b"bb"]
    assert not stream.repeatable


async def test_turn_ends_with_the_stream() -> None:
    turns = FairSlots(1)
    said, more = spoken(b"a")
    stream = ReplayableStream(said, lambda _: True, lambda: turns.slot("vision"))
    more.put_nowait(None)
    assert [word async for word in stream.replay()] == [b"a"]
    assert turns.held == 0, "the replica may take long to answer"


def test_idle_stream_gives_way_to_others_that_wait_for_a_turn() -> None:
    async def received_until_s() -> tuple[float, list[bytes]]:
        turns, time_s = FairSlots(1), asyncio.get_running_loop().time

        def streamed(*words: bytes) -> ReplayableStream:
            said, _ = spoken(*words)
            return ReplayableStream(
                said, lambda _: True, lambda: turns.slot("vision"), lambda: turns.crowded
            )

        idle, other = streamed(), streamed(b"a")
        first = asyncio.ensure_future(anext(idle.replay()))
        await asyncio.sleep(60.0)
        assert not first.done(), "no other stream waits"
        second = asyncio.ensure_future(anext(other.replay()))
        with pytest.raises(IdleStreamError):
            await first
        await idle.end()
        word = await second
        await other.end()
        return time_s(), [word]

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        until_s, words = runner.run(received_until_s())
    assert words == [b"a"]
    assert until_s <= 60.0 + IDLE_S


async def test_end_while_reading_cancels_the_read() -> None:
    said, _ = spoken()
    stream = ReplayableStream(said, lambda _: True)
    waiting = asyncio.ensure_future(anext(stream.replay()))
    await asyncio.sleep(0)
    await stream.end()
    await asyncio.gather(waiting, return_exceptions=True)
    assert waiting.cancelled()
