"""Checks that a client of the activators' API is an activator, and at the address that it reports.

Clients must present a certificate and the activator's ServiceAccount token, and report the address
that they connect from: otherwise both would be enough to receive held requests at any address.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from aiohttp import web

Authenticate = Callable[[str, str], Awaitable[bool]]
"""Tells whether a bearer token, which an address sent, is an activator's."""


class Tls(Protocol):
    """The operator's certificate, and the certificates of clients."""

    async def wait(self) -> None:
        """Wait for the first certificate."""
        ...

    def ssl_context(self) -> ssl.SSLContext:
        """Return the context of a server."""
        ...

    def knows(self, peer_certificate: Mapping[str, Any] | None, name: str) -> bool:
        """Return whether a client's certificate has this name and is still valid."""
        ...


class ActivatorAccess:
    """Refuses clients that are no activators."""

    def __init__(self, authenticate: Authenticate, tls: Tls | None, peer: str) -> None:
        """Accept a valid token and, over mutual TLS, a certificate for `peer`."""
        self._authenticate = authenticate
        self._tls = tls
        self._peer = peer

    async def refusal(self, request: web.Request) -> web.Response | None:
        """Return the error response to a client that is not authorized; None to another."""
        if self._tls is not None and not self._tls.knows(_certificate(request), self._peer):
            rule = f"a valid certificate with the DNS name {self._peer} is required"
            return web.json_response({"error": rule}, status=401)
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or not await self._authenticate(token, request.remote or ""):
            return web.json_response(
                {"error": "the activator's ServiceAccount token is required"}, status=401
            )
        return None


def _certificate(request: web.Request) -> Mapping[str, Any] | None:
    transport = request.transport
    return None if transport is None else transport.get_extra_info("peercert")


def is_same_address(address: str, peer: str) -> bool:
    """Return whether both are one IP address; a socket for both families shows ::ffff:10.0.0.1."""
    try:
        reported, seen = ipaddress.ip_address(address), ipaddress.ip_address(peer)
    except ValueError:
        return False
    if isinstance(seen, ipaddress.IPv6Address) and seen.ipv4_mapped is not None:
        seen = seen.ipv4_mapped
    return reported == seen


def not_its_address(address: str, peer: str) -> web.Response:
    """Return the response to a report of another address than that of the connection."""
    rule = (
        f"address must be that of the connection, {peer}; got {address!r:.80}. Set --address to "
        "the pod's address, and let nothing rewrite the source of connections to the operator"
    )
    return web.json_response({"error": rule}, status=403)
