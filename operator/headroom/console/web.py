"""The console over HTTP: read-only pages with a strict content security policy.

To render the page of a service takes nine decisions, 20 ms of the event loop that evaluates all
services, so each client address has a share of it, and waits once that is used up.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

from aiohttp import web

from headroom.console import pages
from headroom.console.access import AccessRequest, Guard, Verdict
from headroom.console.listing import Query, listing
from headroom.console.pages import overview as overview_page
from headroom.console.pages import service as service_page
from headroom.console.pages.frame import refusal
from headroom.console.pages.what_if_form import FIELDS, FormFields
from headroom.console.read_model import ReadModel, ServiceEntry
from headroom.console.summary import summary_json
from headroom.event_loop_shares import EventLoopShares

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
STATIC = {"console.css": "text/css", "console.js": "text/javascript"}

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def console(model: ReadModel, guard: Guard, now_s: Callable[[], float]) -> web.Application:
    """Build the application; it sends the API server nothing but reviews of tokens."""
    shown = _Pages(model, now_s)
    app = web.Application(middlewares=[_guarded(guard), _described])
    app.add_routes(
        [
            web.get("/", shown.services),
            web.get("/services/{namespace}/{name}", shown.service),
            web.get("/api/services", shown.services_json),
            web.get("/api/services/{namespace}/{name}", shown.service_json),
            web.get("/static/{name}", shown.static),
        ]
    )
    return app


class _Pages:
    """Answers each path; the work of a page waits until its address has a share left."""

    def __init__(self, model: ReadModel, now_s: Callable[[], float]) -> None:
        folder = files(pages).joinpath("static")
        self._model, self._now_s = model, now_s
        self._loop = EventLoopShares()
        self._texts = {name: folder.joinpath(name).read_text(encoding="utf-8") for name in STATIC}

    async def services(self, request: web.Request) -> web.Response:
        query = Query.parse(request.query)

        def page() -> str:
            found = listing(self._model.entries(query.namespace), query)
            return overview_page.rendered(found, now_s=self._now_s())

        return _html(await self._loop.run(request.remote or "", 1, page))

    async def service(self, request: web.Request) -> web.Response:
        found = self._entry(request)
        if found is None:
            return _missing(request)
        form = FormFields(**{name: request.query.get(name, "")[:40] for name in FIELDS})

        def page() -> str:
            return service_page.rendered(found, form, now_s=self._now_s())

        return _html(await self._loop.run(request.remote or "", 1, page))

    async def services_json(self, request: web.Request) -> web.Response:
        namespace = request.query.get("namespace") or None

        def answer() -> web.Response:
            rows = self._model.entries(namespace)
            return _json({"services": [summary_json(one.summary) for one in rows]})

        return await self._loop.run(request.remote or "", 1, answer)

    async def service_json(self, request: web.Request) -> web.Response:
        found = self._entry(request)
        return _missing(request) if found is None else _json(summary_json(found.summary))

    async def static(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self._texts:
            return _missing(request)
        return web.Response(text=self._texts[name], content_type=STATIC[name], charset="utf-8")

    def _entry(self, request: web.Request) -> ServiceEntry | None:
        return self._model.view(request.match_info["namespace"], request.match_info["name"])


def _guarded(guard: Guard) -> Any:
    """Authorize each request first; static files contain no data."""

    @web.middleware
    async def middleware(request: web.Request, handler: _Handler) -> web.StreamResponse:
        namespace = request.match_info.get("namespace") or request.query.get("namespace") or None
        access = AccessRequest(
            host=request.headers.get("Host", ""),
            authorization=request.headers.get("Authorization", ""),
            namespace=namespace,
            peer=request.remote or "",
        )
        if request.path.startswith("/static/"):
            return await handler(request)
        verdict = await guard.judge(access)
        return await handler(request) if verdict.allows else _refused(verdict)

    return middleware


@web.middleware
async def _described(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Turn errors of aiohttp into a page."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        return _html(refusal(error.status, error.reason), error.status)


def _missing(request: web.Request) -> web.Response:
    return _html(refusal(404, f"{request.path[:200]} does not exist: see all services."), 404)


def _refused(verdict: Verdict) -> web.Response:
    response = _html(refusal(verdict.status, verdict.message), verdict.status)
    if verdict.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _html(text: str, status: int = 200) -> web.Response:
    return web.Response(
        text=text, status=status, content_type="text/html", charset="utf-8", headers=HEADERS
    )


def _json(value: object) -> web.Response:
    return web.Response(
        text=json.dumps(value, allow_nan=False), content_type="application/json", headers=HEADERS
    )
