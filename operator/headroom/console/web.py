"""The console over HTTP: read-only pages with a strict content security policy.

A page of a service decides nine times, 20 ms of the event loop that all services are evaluated on,
so each address has a share of it, and waits beyond that.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

from aiohttp import web

from headroom.console import pages
from headroom.console.access import Asking, Guard, Verdict
from headroom.console.listing import Query, listing
from headroom.console.pages import overview as overview_page
from headroom.console.pages import service as service_page
from headroom.console.pages.frame import refusal
from headroom.console.pages.what_if_form import FIELDS, Asked
from headroom.console.read_model import ReadModel, ServiceEntry
from headroom.console.summary import summary_json
from headroom.controller.gather.parsing_turns import ParsingTurns

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
    folder = files(pages).joinpath("static")
    turns = ParsingTurns()
    texts = {name: folder.joinpath(name).read_text(encoding="utf-8") for name in STATIC}

    async def services(request: web.Request) -> web.Response:
        query = Query.parse(request.query)

        def page() -> str:
            seen = listing(model.entries(query.namespace), query)
            return overview_page.rendered(seen, now_s=now_s())

        return _html(await turns.parse(request.remote or "", 1, page))

    async def service(request: web.Request) -> web.Response:
        found = _found(model, request)
        if found is None:
            return _missing(request)
        asked = Asked(**{name: request.query.get(name, "")[:40] for name in FIELDS})

        def page() -> str:
            return service_page.rendered(found, asked, now_s=now_s())

        return _html(await turns.parse(request.remote or "", 1, page))

    async def services_json(request: web.Request) -> web.Response:
        namespace = request.query.get("namespace") or None

        def answer() -> web.Response:
            rows = model.entries(namespace)
            return _json({"services": [summary_json(one.summary) for one in rows]})

        return await turns.parse(request.remote or "", 1, answer)

    async def service_json(request: web.Request) -> web.Response:
        found = _found(model, request)
        return _missing(request) if found is None else _json(summary_json(found.summary))

    async def static(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in texts:
            return _missing(request)
        return web.Response(text=texts[name], content_type=STATIC[name], charset="utf-8")

    app = web.Application(middlewares=[_guarded(guard), _described])
    app.add_routes(
        [
            web.get("/", services),
            web.get("/services/{namespace}/{name}", service),
            web.get("/api/services", services_json),
            web.get("/api/services/{namespace}/{name}", service_json),
            web.get("/static/{name}", static),
        ]
    )
    return app


def _guarded(guard: Guard) -> Any:
    """Authorize each request first; static files contain no data."""

    @web.middleware
    async def middleware(request: web.Request, handler: _Handler) -> web.StreamResponse:
        namespace = request.match_info.get("namespace") or request.query.get("namespace") or None
        asking = Asking(
            host=request.headers.get("Host", ""),
            authorization=request.headers.get("Authorization", ""),
            namespace=namespace,
            peer=request.remote or "",
        )
        if request.path.startswith("/static/"):
            return await handler(request)
        verdict = await guard.judge(asking)
        return await handler(request) if verdict.allows else _refused(verdict)

    return middleware


@web.middleware
async def _described(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Turn errors of aiohttp into a page."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        return _html(refusal(error.status, error.reason), error.status)


def _found(model: ReadModel, request: web.Request) -> ServiceEntry | None:
    return model.view(request.match_info["namespace"], request.match_info["name"])


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
