"""What a caller says is read once, and said again until a replica has begun to answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from headroom.activator.words import Words


def spoken(*words: bytes) -> tuple[AsyncIterator[bytes], asyncio.Queue[bytes | None]]:
    """A caller that says these at once, and then what is put into the queue; None ends it."""
    more: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def said() -> AsyncIterator[bytes]:
        for word in words:
            yield word
        while (later := await more.get()) is not None:
            yield later

    return said(), more


async def test_each_try_hears_everything_from_the_beginning() -> None:
    said, more = spoken(b"a", b"b")
    words = Words(said, lambda _: True)
    more.put_nowait(None)
    for _ in range(3):
        assert [word async for word in words.of_a_try()] == [b"a", b"b"]
    assert words.repeatable


async def test_a_try_that_is_given_up_while_it_waits_loses_no_word() -> None:
    said, more = spoken(b"a")
    words = Words(said, lambda _: True)
    first = words.of_a_try()
    assert await anext(first) == b"a"
    waiting = asyncio.ensure_future(anext(first))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    second = words.of_a_try()
    assert await anext(second) == b"a"
    more.put_nowait(b"b")
    assert await anext(second) == b"b"
    more.put_nowait(None)
    assert [word async for word in second] == []


async def test_once_an_answer_has_begun_nothing_is_kept() -> None:
    said, more = spoken(b"a", b"b")
    words = Words(said, lambda _: True)
    heard = words.of_a_try()
    assert await anext(heard) == b"a"
    words.begun()
    assert not words.repeatable
    assert await anext(heard) == b"b"
    more.put_nowait(b"c")
    more.put_nowait(None)
    assert [word async for word in heard] == [b"c"]


async def test_what_is_too_much_to_keep_is_said_once() -> None:
    said, more = spoken(b"aaaa", b"bb")
    left = 5

    def keep(size: int) -> bool:
        nonlocal left
        left -= size
        return left >= 0

    words = Words(said, keep)
    more.put_nowait(None)
    assert [word async for word in words.of_a_try()] == [b"aaaa", b"bb"]
    assert not words.repeatable


async def test_who_ends_while_a_word_is_awaited_leaves_nobody_waiting() -> None:
    said, _ = spoken()
    words = Words(said, lambda _: True)
    waiting = asyncio.ensure_future(anext(words.of_a_try()))
    await asyncio.sleep(0)
    await words.end()
    await asyncio.gather(waiting, return_exceptions=True)
    assert waiting.cancelled()
