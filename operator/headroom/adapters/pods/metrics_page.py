"""Reads a server's metrics page once, for a command line."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import aiohttp

from headroom.adapters.http_session import HttpSession, read_start
from headroom.errors import Unmeasurable

MAX_PAGE_BYTES = 8 << 20
TIMEOUT_S = 10.0
"""For the whole answer."""


def page_url(url: str, path: str) -> str:
    """Return the address of the page; a URL without a path gets the server's usual one.

    Raises Unmeasurable for anything but HTTP.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Unmeasurable(f"the URL must be http://HOST:PORT or https://HOST:PORT; got {url}")
    return url if parts.path.strip("/") else url.rstrip("/") + path


def metrics_page(url: str, timeout_s: float = TIMEOUT_S) -> str:
    """Return the page.

    Raises Unmeasurable: the server does not answer in time, or not with a page.
    """
    try:
        return asyncio.run(_page(url, timeout_s))
    except TimeoutError as error:
        why = f"no whole answer within {timeout_s:g} s"
        raise Unmeasurable(f"{url} does not answer: {why}. Give a replica's address") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise Unmeasurable(f"{url} does not answer: {error}. Give a replica's address") from error


async def _page(url: str, timeout_s: float) -> str:
    async with HttpSession() as http, http.request("GET", url, timeout_s) as response:
        if response.status != 200:
            raise Unmeasurable(
                f"{url} must answer with 200; got {response.status}. Give a replica's address"
            )
        page = await read_start(response, MAX_PAGE_BYTES, MAX_PAGE_BYTES)
    return page.decode(errors="replace")
