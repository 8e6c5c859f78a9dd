"""One query covers all pods; a response is complete or an error."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qs

import pytest
from aiohttp import web

from answering import Answering
from headroom.adapters.prometheus_session import (
    LARGE_BYTES,
    MAX_ANSWER_BYTES,
    MAX_LISTS,
    MAX_SERIES,
)
from headroom.adapters.prometheus_source import PrometheusSource
from headroom.errors import ScrapeFailed
from headroom.telemetry.prometheus_pages import ScrapedPage

pytestmark = pytest.mark.clock

DEADLINE_S = 0.4
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answered(*series: tuple[str, str, float, str], **more: Any) -> str:
    result = [
        {"metric": {"__name__": name, "pod": pod}, "values": [[time_s, value]]}
        for name, pod, time_s, value in series
    ]
    data = {"resultType": "matrix", "result": result}
    return json.dumps({"status": "success", "data": data, **more})


async def ask(
    *urls: str, pods: tuple[str, ...] = ("p",), deadline_s: float = DEADLINE_S
) -> dict[str, ScrapedPage]:
    async with PrometheusSource("main", urls, deadline_s=deadline_s) as source:
        return dict(await source.pages(frozenset({"m"}), "shop", pods, 30.0))


@asynccontextmanager
async def raw_server(handler: Handler) -> AsyncIterator[str]:
    """A server that violates HTTP."""
    connections: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            await handler(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()
    for task in connections:
        task.cancel()
    await asyncio.gather(*connections, return_exceptions=True)


async def test_one_query_covers_all_pods(server: Answering) -> None:
    server.gives(text=answered(("m", "p", 5.0, "1"), ("m", "q", 6.5, "2")))
    found = await ask(server.url, pods=("p", "q"), deadline_s=5.0)
    assert {pod: (page.time_s, list(page.page.values)) for pod, page in found.items()} == {
        "p": (5.0, [1.0]),
        "q": (6.5, [2.0]),
    }
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.query) == ("POST", "/api/v1/query", {})
    assert parse_qs(asked.body)["query"] == ['{__name__=~"m",namespace="shop",pod=~"p|q"}[30000ms]']


async def test_many_pods_are_queried_in_parts(server: Answering) -> None:
    server.gives(text=answered(("m", "p", 5.0, "1")))
    await ask(server.url, pods=tuple(f"p{number}" for number in range(250)), deadline_s=5.0)
    assert len(server.asked) == 3


async def test_latest_page_of_two_prometheus_replicas_is_used(server: Answering) -> None:
    server.gives(text=answered(("m", "p", 5.0, "1"), ("m", "q", 9.0, "1")))
    other = Answering()

    async def older(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4096)
        body = answered(("m", "p", 7.0, "2"), ("m", "q", 8.0, "2")).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()

    async with raw_server(older) as other.url:
        found = await ask(server.url, other.url, deadline_s=5.0)
    assert (found["p"].time_s, found["q"].time_s) == (7.0, 9.0)


async def test_one_of_two_prometheus_replicas_is_enough(server: Answering) -> None:
    server.gives(text=answered(("m", "p", 5.0, "1")))
    found = await ask("http://127.0.0.1:1", server.url, deadline_s=5.0)
    assert found["p"].time_s == 5.0


async def test_no_prometheus_replica_is_an_error(server: Answering) -> None:
    server.gives(status=503, text="starting")
    with pytest.raises(ScrapeFailed, match=r"main .* rejected the query: .*503"):
        await ask("http://127.0.0.1:1", server.url, deadline_s=5.0)
    assert len(server.asked) == 1  # no retry that nobody sees


async def test_partial_response_is_an_error(server: Answering) -> None:
    server.gives(text=answered(("m", "p", 5.0, "1"), warnings=["store gone"]))
    with pytest.raises(ScrapeFailed, match=r"the response is partial.*store gone"):
        await ask(server.url, deadline_s=5.0)
    server.gives(text=answered(("m", "p", 5.0, "1"), warnings=[], infos=["m is a gauge"]))
    assert await ask(server.url, deadline_s=5.0)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (200, "<html>"),
        (200, ""),
        (200, "{}"),
        (200, "[]"),
        (200, "null"),
        (200, '{"data": null}'),
        (200, '["warnings"]'),
        (200, '{"data": {"result": 5}}'),
        (200, '{"data": {"result": [{}]}}'),
        (200, '{"data": {"result": []'),
        (200, '{"data": ' + "[" * 100_000),
        (400, '{"status":"error","errorType":"bad_data"}'),
        (404, ""),
        (500, "x" * 100_000),
    ],
)
async def test_malformed_response_is_a_short_error(
    server: Answering, status: int, text: str
) -> None:
    server.gives(status=status, text=text)
    with pytest.raises(ScrapeFailed) as raised:
        await ask(server.url, deadline_s=5.0)
    assert len(str(raised.value)) < 400


async def test_redirect_is_not_followed(server: Answering) -> None:
    server.gives(status=307, Location="http://169.254.169.254/latest")
    with pytest.raises(ScrapeFailed, match="307"):
        await ask(server.url, deadline_s=5.0)
    assert len(server.asked) == 1


async def test_proxy_of_the_environment_is_not_used(
    server: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    server.gives(text=answered(("m", "p", 5.0, "1")))
    assert await ask(server.url, deadline_s=5.0)


async def _hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


async def _drip_headers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.05)


async def _drip_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.05)


async def _drip_chunks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"1\r\n \r\n")
        await writer.drain()
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("handler", [_hang, _drip_headers, _drip_body, _drip_chunks])
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
