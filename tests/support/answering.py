"""HTTP server of a test: fixed answers, and a record of the requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Asked:
    """One request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: str


@dataclass
class Answering:
    """Answers every request in the same way, and remembers what it was asked."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    answer: Answer | None = None

    def gives(self, status: int = 200, text: str = "", **headers: str) -> None:
        """Answer with this from now on."""

        async def answer(_: web.Request) -> web.Response:
            return web.Response(status=status, text=text, headers=headers)

        self.answer = answer

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.text()
        query, headers = dict(request.query), dict(request.headers)
        self.asked.append(Asked(request.method, request.path, query, headers, body))
        assert self.answer is not None
        return await self.answer(request)
