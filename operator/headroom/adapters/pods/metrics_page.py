"""Reads a server's metrics page once, for a command line."""

from __future__ import annotations

import urllib.error
import urllib.request
from urllib.parse import urlsplit

from headroom.errors import Unmeasurable

MAX_PAGE_BYTES = 8 << 20
TIMEOUT_S = 10.0


def page_url(url: str, path: str) -> str:
    """Return the address of the page; a URL without a path gets the server's usual one.

    Raises Unmeasurable for anything but HTTP.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Unmeasurable(f"the URL must be http://HOST:PORT or https://HOST:PORT; got {url}")
    return url if parts.path.strip("/") else url.rstrip("/") + path


def metrics_page(url: str) -> str:
    """Return the page.

    Raises Unmeasurable: the server does not answer, or not with a page.
    """
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:  # noqa: S310 - see page_url
            page: bytes = answer.read(MAX_PAGE_BYTES + 1)
    except (OSError, ValueError) as error:
        raise Unmeasurable(f"{url} does not answer: {error}. Give a replica's address") from error
    if len(page) > MAX_PAGE_BYTES:
        raise Unmeasurable(f"{url} must have at most {MAX_PAGE_BYTES} bytes of metrics")
    return page.decode(errors="replace")
