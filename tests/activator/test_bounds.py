"""The activator's bounds on connections, heads and forwarded bytes, and its memory at them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headroom.activator.held_request import Bounds
from headroom.activator.http_request import Incoming
from headroom.activator.metrics import Metrics
from headroom.activator.proxy import HoldingProxy
from headroom.activator.request_buffer import RequestBuffer
from reliability.attacks import activator
from support.fakes_activator import Stage, served, stage

pytestmark = pytest.mark.clock


@contextlib.asynccontextmanager
async def clients(
    held: Stage, count: int, data: bytes = b""
) -> AsyncIterator[list[asyncio.StreamReader]]:
    pairs = [await asyncio.open_connection("127.0.0.1", held.port) for _ in range(count)]
    for _, writer in pairs:
        writer.write(data)
        await writer.drain()
    try:
        yield [reader for reader, _ in pairs]
    finally:
        for _, writer in pairs:
            writer.close()


async def test_connections_of_one_namespace_are_bounded(tmp_path: Path) -> None:
    async with stage(tmp_path, Bounds(connections=8)) as held:
        await held.opened()
        await asyncio.sleep(0.1)
        async with clients(held, 4), clients(held, 1) as (refused,):
            answer = await asyncio.wait_for(refused.read(), 5.0)
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert b"too many connections" in answer


async def test_heads_that_arrive_are_bounded(tmp_path: Path) -> None:
    async with stage(tmp_path, Bounds(head_bytes=64 << 10)) as held:
        await held.opened()
        half = b"GET / HTTP/1.1\r\nx: " + b"y" * 15_000
        async with clients(held, 2, half):
            await asyncio.sleep(0.2)
            async with clients(held, 1, half) as (refused,):
                answer = await asyncio.wait_for(refused.read(), 5.0)
                assert answer.startswith(b"HTTP/1.1 429 ")


async def test_counts_of_services_that_are_gone_are_dropped() -> None:
    """Each takes 1 kB of memory and 0.4 of the page; others may be created forever."""
    metrics = Metrics()
    proxy = HoldingProxy(RequestBuffer(Bounds()), metrics, lambda _: None)
    for number in range(100):
        await proxy.serve([served(20001, key=f"vision/{number}")], opens=False)
        for outcome in ("Answered", "Expired"):
            metrics.ended(f"vision/{number}", outcome)
    await proxy.serve([served(20001, key="vision/99")], opens=False)
    page = metrics.page(0, 0).decode()
    assert page.count("headroom_activator_requests_total{") == 2
    assert 'service="vision/99"' in page


def test_request_that_was_dropped_is_freed_without_a_garbage_collection() -> None:
    class Seen(Incoming):
        __slots__ = ("__weakref__",)

    gc.disable()
    try:
        one = Seen()
        one.feed(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nbody")
        gone = weakref.ref(one)
        one.drop()
        del one
        assert gone() is None
    finally:
        gc.enable()


async def test_activator_survives_bodies_at_its_limit() -> None:
    found = await activator.survive(["bodies"], 3.0)
    assert found.kills == 0
    assert found.peak_bytes < activator.limit_bytes()
    assert found.answered == 1
