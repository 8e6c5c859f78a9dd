"""A Prometheus that is slow, large or endless: deadlines and bounds."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import pytest
from aiohttp import web

from adapters.asked_prometheus import DEADLINE_S, Handler, answered, ask, raw_server
from headroom.adapters.prometheus.prometheus_session import (
    LARGE_BYTES,
    MAX_ANSWER_BYTES,
    MAX_LISTS,
    MAX_SERIES,
)
from headroom.adapters.prometheus.prometheus_source import PrometheusSource
from headroom.errors import ScrapeFailed
from support.answering import Answering

pytestmark = pytest.mark.clock


async def _hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


def _dripping(head: bytes, drop: bytes) -> Handler:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" + head)
        while True:
            writer.write(drop)
            await writer.drain()
            await asyncio.sleep(0.05)

    return drip


SLOW = {
    "nothing comes": _hang,
    "headers drop by drop": _dripping(b"X-Long: ", b"x"),
    "a body drop by drop": _dripping(b"Content-Length: 100000\r\n\r\n", b" "),
    "chunks drop by drop": _dripping(b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
}


@pytest.mark.parametrize("handler", SLOW.values(), ids=list(SLOW))
async def test_slow_response_ends_at_the_deadline_without_leaking_threads(
    handler: Handler,
) -> None:
    async with (
        raw_server(handler) as url,
        PrometheusSource("main", [url], deadline_s=DEADLINE_S) as source,
    ):
        begun_s = time.monotonic()
        for _ in range(2):
            asked = (source.pages(frozenset({"m"}), "shop", ["p"], 30.0) for _ in range(4))
            failed = await asyncio.gather(*asked, return_exceptions=True)
            assert [type(one) for one in failed] == [ScrapeFailed] * 4
        # Twice the deadline, not four times: the threads of the first round were free again.
        assert time.monotonic() - begun_s < 3.5 * DEADLINE_S


async def test_slow_queries_of_a_namespace_let_others_pass(server: Answering) -> None:
    """A tenant's pods decide how much Prometheus has to answer."""

    async def answer(request: web.Request) -> web.Response:
        if "hostile" in await request.text():
            await asyncio.Event().wait()
        return web.Response(text=answered(("m", "p", 5.0, "1")))

    server.answer = answer
    async with PrometheusSource("main", [server.url], deadline_s=DEADLINE_S) as source:

        async def always() -> None:
            while True:
                with suppress(ScrapeFailed):
                    await source.pages(frozenset({"m"}), "hostile", ["p"], 30.0)

        hostile = [asyncio.create_task(always()) for _ in range(40)]
        await asyncio.sleep(2 * DEADLINE_S)
        for _ in range(4):
            assert await source.pages(frozenset({"m"}), "shop", ["p"], 30.0)
        for one in hostile:
            one.cancel()
        await asyncio.gather(*hostile, return_exceptions=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"data": {"result": [' + '{"metric":{}},' * MAX_SERIES + '{"metric":{}}]}}', "25001 and"),
        ('{"data": {"result": ' + "[" * MAX_LISTS + "[" + "]" * MAX_LISTS + "]}}", "0 and 250001"),
    ],
)
async def test_answer_of_too_many_parts_is_not_decoded(
    server: Answering, text: str, words: str
) -> None:
    server.gives(text=text)
    with pytest.raises(ScrapeFailed, match=words):
        await ask(server.url, deadline_s=5.0)


async def test_large_answers_are_read_one_after_the_other(server: Answering) -> None:
    text = answered(*(("m", f"p{at}", 5.0, "1" * 200) for at in range(LARGE_BYTES // 250)))
    assert len(text) > LARGE_BYTES
    server.gives(text=text)
    async with PrometheusSource("main", [server.url, server.url], deadline_s=9.0) as source:
        for _ in range(2):  # also after an answer that cannot be read
            asked = (source.pages(frozenset({"m"}), name, ["p"], 30.0) for name in "abc")
            found = await asyncio.gather(*asked, return_exceptions=True)
            server.gives(text=text[:-2])
    assert [type(one) for one in found] == [ScrapeFailed] * 3


async def test_endless_response_ends_at_the_size_limit() -> None:
    sent = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.read(4096)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b" " * (1 << 20))
            await writer.drain()
            sent += 1 << 20

    async with raw_server(pour) as url:
        with pytest.raises(ScrapeFailed, match="the response has more than"):
            await ask(url, deadline_s=20.0)
    assert sent < 2 * MAX_ANSWER_BYTES
