"""Tells the gateways what they route: Envoy's REST discovery, asked once and answered on news.

A question is `POST /v3/discovery:KIND` with the version that the gateway has. It is answered at
once where there is another one, else held until there is, or until `HOLD_S` are over: then 304.
So a change reaches every gateway within a round trip, and an operator that starts anew with the
same content says nothing. Nobody is answered who does not show the gateway's own token.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from headroom.gateway.snapshot import Answer, Snapshot
from headroom.gateway.type_urls import HOLD_S

_log = logging.getLogger(__name__)

MAX_QUESTION_BYTES = 1 << 18
REPEAT_AFTER_S = 0.5
"""The same version is told the same gateway no sooner: it was refused, or lost."""
ELSEWHERE_AFTER_S = 0.2
REMEMBERED = 16_384

_Key = tuple[str, str]
Authenticate = Callable[[str], Awaitable[bool]]
"""Whether this bearer token is a gateway's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a gateway asks for, and what it has."""

    node: str
    names: tuple[str, ...]
    version: str

    @classmethod
    def parse(cls, body: bytes) -> Question:
        """Read a DiscoveryRequest; raise ValueError."""
        asked = orjson.loads(body)
        if not isinstance(asked, dict):
            raise ValueError("a DiscoveryRequest is an object")
        node = asked.get("node") or {}
        names = asked.get("resource_names") or asked.get("resourceNames") or []
        version = asked.get("version_info") or asked.get("versionInfo") or ""
        if not (
            isinstance(node, dict)
            and isinstance(version, str)
            and isinstance(names, list)
            and all(isinstance(name, str) for name in names)
        ):
            raise ValueError("a DiscoveryRequest has node, resource_names and version_info")
        return cls(node=str(node.get("id", "")), names=tuple(names), version=version)


class XdsServer:
    """Answers the gateways from the last snapshot that was published."""

    def __init__(self, authenticate: Authenticate, hold_s: float = HOLD_S) -> None:
        self._authenticate = authenticate
        self._hold_s = hold_s
        self._snapshot: Snapshot | None = None
        self._news: defaultdict[_Key, asyncio.Event] = defaultdict(asyncio.Event)
        self._told: dict[tuple[str, str, tuple[str, ...]], tuple[str, float]] = {}

    def publish(self, snapshot: Snapshot) -> None:
        """Tell this from now on; who waits for what is new in it is answered."""
        before, self._snapshot = self._snapshot or Snapshot(), snapshot
        for kind, answer in snapshot.everything.items():
            if before.everything.get(kind) != answer:
                self._wake((kind, ""))
        for (kind, name), answer in snapshot.named.items():
            if before.named.get((kind, name)) != answer:
                self._wake((kind, name))

    def withdraw(self) -> None:
        """Tell nothing any more: another process decides. What the gateways know stands."""
        self._snapshot = None
        for key in list(self._news):
            self._wake(key)

    def application(self) -> web.Application:
        """Build the application."""
        served = web.Application(client_max_size=MAX_QUESTION_BYTES)
        served.add_routes([web.post(r"/v3/discovery:{kind:[a-z]+}", self._discover)])
        return served

    async def serve(self, port: int, host: str | None = None) -> None:
        """Serve until cancelled. Raises OSError where the port is taken."""
        runner = web.AppRunner(
            self.application(), access_log=None, shutdown_timeout=0.5, keepalive_timeout=120.0
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, host=host, port=port, backlog=4096).start()
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    def _wake(self, key: _Key) -> None:
        waiting = self._news.pop(key, None)
        if waiting is not None:
            waiting.set()

    async def _discover(self, request: web.Request) -> web.Response:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or not await self._authenticate(token):
            return web.json_response({"error": "the token of the gateway is needed"}, status=401)
        try:
            question = Question.parse(await request.read())
        except ValueError as error:
            return web.json_response({"error": str(error)}, status=400)
        answer = await self._news_for(request.match_info["kind"], question)
        if self._snapshot is None:
            # Another process decides; the next connection may lead to it.
            await asyncio.sleep(ELSEWHERE_AFTER_S)
            refusal = web.json_response({"error": "this operator does not lead"}, status=503)
            refusal.force_close()
            return refusal
        if answer is None:
            return web.Response(status=304)
        return web.Response(body=answer.body, content_type="application/json")

    async def _news_for(self, kind: str, question: Question) -> Answer | None:
        """Return what the gateway does not have yet, once there is any; None: nothing for long."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._hold_s
        asked = (question.node, kind, question.names)
        while self._snapshot is not None:
            answer = self._snapshot.answer(kind, question.names)
            if answer is not None and answer.version != question.version:
                version, told_s = self._told.get(asked, ("", 0.0))
                pause_s = told_s + REPEAT_AFTER_S - loop.time()
                if version != answer.version or pause_s <= 0:
                    self._remember(asked, answer.version, loop.time())
                    return answer
                await asyncio.sleep(pause_s)
                continue
            name = question.names[0] if len(question.names) == 1 else ""
            try:
                async with asyncio.timeout_at(until_s):
                    await self._news[kind, name].wait()
            except TimeoutError:
                return None
        return None

    def _remember(self, asked: Any, version: str, now_s: float) -> None:
        if len(self._told) >= REMEMBERED:
            self._told.clear()
        self._told[asked] = (version, now_s)
