"""A proxy in front of the API server that injects faults.

Plain HTTP on loopback towards the operator, whose own token goes through; TLS towards the server.
Every exchange is kept, so that a test can say what was written, when, and whether it was taken.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import aiohttp
from aiohttp import web

from cluster.addresses import LOOPBACK
from reliability.fault_proxy.calls import Call, Verb, read_call
from reliability.fault_proxy.exchanges import Exchange, given_version
from reliability.fault_proxy.gates import Gate, Open
from reliability.fault_proxy.proxied_messages import (
    break_off,
    broken_off,
    headers_of,
    in_pieces,
    is_instead,
    login_page,
)
from reliability.fault_proxy.rules import (
    Delay,
    DelayEvents,
    Drip,
    Fault,
    Hang,
    InStream,
    LoginPage,
    Plan,
    Refuse,
    Reset,
    Rule,
    TimeTravel,
    Truncate,
    WatchError,
)
from reliability.fault_proxy.streams import Stream, error_event, status

REMEMBERED = 256
"""Answers kept of each read, for travels in time."""


_Answer = tuple[int, bytes]
"""Status and body of an answer."""


class FaultProxy:
    """Use as an async context manager; `url` is what the operator is given for a server."""

    def __init__(
        self, server: str, authority_pem: str | None = None, gate: Gate | None = None
    ) -> None:
        self._server = server
        self._tls = ssl.create_default_context(cadata=authority_pem)
        self.gate = gate or Open()
        self.exchanges: list[Exchange] = []
        self._plan = Plan()
        self._streams: list[tuple[web.Request, Call]] = []
        self._answers: dict[str, deque[tuple[float, _Answer]]] = {}
        self.url = ""

    async def __aenter__(self) -> Self:
        """Listen on a free port."""
        self._session = aiohttp.ClientSession(
            self._server,
            connector=aiohttp.TCPConnector(ssl=self._tls, limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
            skip_auto_headers=("Content-Type",),
        )
        application = web.Application(client_max_size=1 << 24)
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(
            application, access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, LOOPBACK, 0).start()
        self.url = f"http://{LOOPBACK}:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        """Break off what is open, and end."""
        for request, _call in list(self._streams):
            break_off(request)
        await self._runner.cleanup()
        await self._session.close()

    def inject(self, rules: Sequence[Rule]) -> None:
        """Apply these rules from now on, also to open watches; no rules mean no fault."""
        self._plan = Plan.of(rules)
        now_s = time.monotonic()
        for request, call in self._streams:
            fault = self._plan.of_stream(call, now_s)
            if fault is not None and not isinstance(fault, InStream):
                break_off(request)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        call = read_call(request.method, request.path, request.query)
        fault, self._plan = self._plan.judge(call, time.monotonic())
        sent = await request.read()
        exchange = Exchange(
            at_s=time.monotonic(), call=call, code=0, fault=fault, sent=sent if call.writes else b""
        )
        await self.gate.before(call)
        if is_instead(fault):
            self.exchanges.append(exchange)
            return await self._instead(request, fault)
        if call.verb is Verb.WATCH:
            self.exchanges.append(exchange)
            return await self._watch(request, call, fault)
        code, answer, headers = await self._forward(request, sent)
        taken = replace(exchange, code=code)
        version = given_version(answer) if taken.taken else 0
        self.exchanges.append(replace(taken, version=version))
        await self.gate.after(call, code)
        code, body = self._as_it_was(request, fault, (code, answer), exchange.at_s)
        return await self._answer(request, fault, code, headers, body)

    async def _forward(
        self, request: web.Request, sent: bytes
    ) -> tuple[int, bytes, dict[str, str]]:
        async with self._session.request(
            request.method, request.raw_path, headers=headers_of(request), data=sent or None
        ) as answer:
            names = ("Content-Type", "Retry-After", "Date")
            headers = {name: answer.headers[name] for name in names if name in answer.headers}
            return answer.status, await answer.read(), headers

    async def _instead(self, request: web.Request, fault: Fault | None) -> web.StreamResponse:
        match fault:
            case Refuse():
                body = json.dumps(status(fault.code, fault.message)).encode()
                headers = {"Content-Type": "application/json"}
                if fault.retry_after_s is not None:
                    headers["Retry-After"] = str(fault.retry_after_s)
                return web.Response(status=fault.code, body=body, headers=headers)
            case WatchError():
                event = error_event(fault.code, "sent by the fault proxy")
                return web.Response(body=event, content_type="application/json")
            case Hang():
                await asyncio.Event().wait()
        return broken_off(request)

    async def _answer(
        self,
        request: web.Request,
        fault: Fault | None,
        code: int,
        headers: dict[str, str],
        body: bytes,
    ) -> web.StreamResponse:
        match fault:
            case Reset():
                return broken_off(request)
            case Hang():
                await asyncio.Event().wait()
            case Delay():
                await asyncio.sleep(fault.seconds)
            case LoginPage():
                return login_page()
            case Drip() | Truncate():
                return await in_pieces(request, fault, code, headers, body)
        return web.Response(status=code, headers=headers, body=body)

    def _as_it_was(
        self, request: web.Request, fault: Fault | None, answer: _Answer, now_s: float
    ) -> _Answer:
        if request.method != "GET":
            return answer
        kept = self._answers.setdefault(request.raw_path, deque(maxlen=REMEMBERED))
        if not isinstance(fault, TimeTravel):
            kept.append((now_s, answer))
            return answer
        old = [one for at_s, one in kept if at_s <= now_s - fault.seconds]
        return old[-1] if old else (kept[0][1] if kept else answer)

    async def _watch(
        self, request: web.Request, call: Call, fault: Fault | None
    ) -> web.StreamResponse:
        if isinstance(fault, LoginPage):
            return login_page()
        if isinstance(fault, Delay):
            await asyncio.sleep(fault.seconds)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        self._streams.append((request, call))
        stream = Stream()
        try:
            async with self._session.get(request.raw_path, headers=headers_of(request)) as upstream:
                response.set_status(upstream.status)
                await response.prepare(request)
                while line := await upstream.content.readline():
                    fault = self._plan.of_stream(call, time.monotonic())
                    if isinstance(fault, Truncate):
                        await response.write(line[: int(len(line) * fault.share)])
                        break_off(request)
                        break
                    passed, stream = stream.passed(fault, line)
                    if isinstance(fault, DelayEvents):
                        await asyncio.sleep(fault.seconds)
                    for one in passed:
                        await self._pass_on(response, one, call)
        finally:
            self._streams.remove((request, call))
        return response

    async def _pass_on(self, response: web.StreamResponse, line: bytes, call: Call) -> None:
        """Send an event, drop by drop for as long as it is to drip."""
        for place in range(len(line)):
            fault = self._plan.of_stream(call, time.monotonic())
            if not isinstance(fault, Drip):
                await response.write(line[place:])
                return
            await response.write(line[place : place + 1])
            await asyncio.sleep(1.0 / fault.bytes_per_s)
