"""Requests that offer to go on in another protocol, which a server may ignore. Pure.

Java's HTTP client offers HTTP/2 with every request over plain TCP, also with one that has a body.
Source: RFC 9110, section 7.8.
"""

from __future__ import annotations

from headroom_server.connection import Headers

OFFER = frozenset({b"upgrade", b"http2-settings"})


def without_offer(method: bytes, url: bytes, version: str, headers: Headers) -> bytes:
    """Return a request's head without its offer; b"" if it has none. Names are in lower case."""
    kept = [b"%b: %b\r\n" % one for one in headers if one[0] not in OFFER]
    if len(kept) == len(headers):
        return b""
    return b"%b %b HTTP/%b\r\n%b\r\n" % (method, url, version.encode(), b"".join(kept))
