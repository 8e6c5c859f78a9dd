"""The messages that a fault proxy passes on: headers, pieces, and answers that break off."""

from __future__ import annotations

import asyncio
import contextlib

from aiohttp import web

from reliability.fault_proxy.rules import (
    Drip,
    Fault,
    Hang,
    Refuse,
    Reset,
    Truncate,
    WatchError,
)

_HOP_BY_HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}


def login_page() -> web.Response:
    """Return the page of a portal that answers instead of the API server."""
    return web.Response(text="<html><body>Sign in</body></html>", content_type="text/html")


def is_instead(fault: Fault | None) -> bool:
    """Return whether the API server is not asked at all."""
    if isinstance(fault, Reset | Hang):
        return not fault.taken
    return isinstance(fault, Refuse | WatchError)


async def in_pieces(
    request: web.Request, fault: Drip | Truncate, code: int, headers: dict[str, str], body: bytes
) -> web.StreamResponse:
    """Announce all of the body; send it drop by drop, or a part of it and close."""
    response = web.StreamResponse(status=code, headers=headers)
    response.content_length = len(body)
    await response.prepare(request)
    if isinstance(fault, Truncate):
        await response.write(body[: int(len(body) * fault.share)])
        break_off(request)
        return response
    with contextlib.suppress(ConnectionError):
        for place in range(len(body)):
            await response.write(body[place : place + 1])
            await asyncio.sleep(1.0 / fault.bytes_per_s)
    return response


def headers_of(request: web.Request) -> dict[str, str]:
    """Return the headers of a request that are passed on."""
    kept = {k: v for k, v in request.headers.items() if k.lower() not in _HOP_BY_HOP}
    return kept | {"Accept-Encoding": "identity"}


def break_off(request: web.Request) -> None:
    """Close without a word: the other side sees a reset."""
    if request.transport is not None:
        request.transport.abort()


def broken_off(request: web.Request) -> web.StreamResponse:
    """Close the connection; return what the web framework expects."""
    break_off(request)
    return web.Response()
