"""The fault proxy in front of a small server: the effect of each fault on its client."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web

from reliability.fault_proxy.calls import Verb
from reliability.fault_proxy.proxy import FaultProxy
from reliability.fault_proxy.rules import (
    Delay,
    Drip,
    Fault,
    Hang,
    LoginPage,
    Refuse,
    Reset,
    Rule,
    Silence,
    TimeTravel,
    Truncate,
    WatchError,
)
from support.loopback import on_loopback

pytestmark = pytest.mark.clock

PODS = "/api/v1/namespaces/a/pods"


@contextlib.asynccontextmanager
async def behind_a_proxy() -> AsyncIterator[tuple[FaultProxy, aiohttp.ClientSession, list[str]]]:
    """A server that counts what it was asked, a proxy in front of it, and a client."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.method)
        if "watch" not in request.query:
            return web.json_response({"items": [], "asked": len(asked)})
        stream = web.StreamResponse()
        await stream.prepare(request)
        for number in range(1000):
            await stream.write(b'{"type":"ADDED","object":{"n":%d}}\n' % number)
            await asyncio.sleep(0.01)
        return stream

    timeout = aiohttp.ClientTimeout(total=0.25)
    async with (
        on_loopback(answer) as server,
        FaultProxy(server) as proxy,
        aiohttp.ClientSession(proxy.url, timeout=timeout) as client,
    ):
        yield proxy, client, asked


@pytest.mark.parametrize(
    ("fault", "seen", "asked"),
    [
        (Refuse(code=503), "503", 0),
        (Refuse(code=429, retry_after_s=7), "429 after 7", 0),
        (Reset(), "broken", 0),
        (Reset(taken=True), "broken", 1),
        (Hang(), "timeout", 0),
        (Hang(taken=True), "timeout", 1),
        (Delay(seconds=0.1), "200", 1),
        (Delay(seconds=9.0), "timeout", 1),
        (Drip(bytes_per_s=5.0), "timeout", 1),
        (Drip(bytes_per_s=2000.0), "200", 1),
        (Truncate(), "broken", 1),
        (LoginPage(), "html", 1),
    ],
)
async def test_what_a_client_sees_of_a_fault(fault: Fault, seen: str, asked: int) -> None:
    async with behind_a_proxy() as (proxy, client, server):
        proxy.inject([Rule(fault=fault, verbs=frozenset({Verb.CREATE}))])
        assert await seen_by(client, "POST") == seen
        assert len(server) == asked
        proxy.inject([])
        assert await seen_by(client, "POST") == "200"
        assert [one.fault for one in proxy.exchanges] == [fault, None]
        assert [one.taken for one in proxy.exchanges] == [asked == 1, True]


async def seen_by(client: aiohttp.ClientSession, method: str) -> str:
    try:
        async with client.request(method, PODS) as answer:
            await answer.read()
            if answer.content_type == "text/html":
                return "html"
            after = answer.headers.get("Retry-After")
            return f"{answer.status} after {after}" if after else str(answer.status)
    except TimeoutError:
        return "timeout"
    except aiohttp.ClientError:
        return "broken"


async def test_stale_read_returns_an_earlier_answer() -> None:
    async with behind_a_proxy() as (proxy, client, _):

        async def number() -> int:
            async with client.get(PODS) as answer:
                return int((await answer.json())["asked"])

        assert [await number(), await number()] == [1, 2]
        await asyncio.sleep(0.2)
        assert await number() == 3
        proxy.inject([Rule(fault=TimeTravel(seconds=0.15))])
        assert await number() == 2
        proxy.inject([])
        assert await number() == 5


async def test_fault_breaks_streams_that_are_open() -> None:
    async with behind_a_proxy() as (proxy, client, _):
        async with client.get(PODS, params={"watch": "true"}) as stream:
            assert await stream.content.readline()
            proxy.inject([Rule(fault=Reset(), verbs=frozenset({Verb.WATCH}))])
            with pytest.raises(aiohttp.ClientError):
                await read_to_the_end(stream)
        proxy.inject([Rule(fault=WatchError(code=410))])
        async with client.get(PODS, params={"watch": "true"}) as stream:
            assert b'"code": 410' in await stream.read()


@pytest.mark.parametrize(
    ("fault", "begins", "ends"),
    [
        (LoginPage(), b"<html>", None),
        (Truncate(), b'{"type":"ADDED"', aiohttp.ClientError),
        (Drip(bytes_per_s=100.0), b'{"type"', TimeoutError),
        (Delay(seconds=9.0), b"", TimeoutError),
    ],
)
async def test_what_a_watch_sees_of_a_fault(
    fault: Fault, begins: bytes, ends: type[Exception] | None
) -> None:
    async with behind_a_proxy() as (proxy, client, _):
        proxy.inject([Rule(fault=fault, verbs=frozenset({Verb.WATCH}))])
        seen, ended = b"", None
        try:
            async with client.get(PODS, params={"watch": "true"}) as stream:
                while piece := await stream.content.readany():
                    seen += piece
        except (aiohttp.ClientError, TimeoutError) as error:
            ended = error
        assert seen.startswith(begins)
        assert len(seen) < 60
        assert ended is None if ends is None else isinstance(ended, ends)


async def test_a_stream_that_falls_silent_stays_open_and_says_nothing() -> None:
    async with (
        behind_a_proxy() as (proxy, client, _),
        client.get(PODS, params={"watch": "true"}) as stream,
    ):
        assert await stream.content.readline()
        proxy.inject([Rule(fault=Silence())])
        begun_s = time.monotonic()
        with pytest.raises(TimeoutError):
            await read_to_the_end(stream)
        assert time.monotonic() - begun_s > 0.2


async def read_to_the_end(stream: aiohttp.ClientResponse) -> None:
    while await stream.content.readline():
        pass
