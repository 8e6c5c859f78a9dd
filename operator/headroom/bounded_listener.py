"""Accepts connections up to a bound, of which each address has a share.

A TLS connection costs 300 KiB from its first byte on, also of a client without a certificate, so it
is counted before its handshake, for which there are a few seconds.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

from headroom.fair_share import FairShare

_log = logging.getLogger(__name__)

HANDSHAKE_S = 5.0
CLOSED_SEEN_AFTER_S = 0.5
ACCEPT_AGAIN_S = 0.1
"""After an error of the system, such as no free file descriptor."""

PAGE_CONNECTIONS = 32
"""To pages of metrics and status. Each may hold one that is not read."""
CONNECTED_S = 60.0
"""A client that stays connects again; one that vanished gives its place back."""

Factory = Callable[[], asyncio.BaseProtocol]


def listening(port: int, host: str | None) -> socket.socket:
    """Listen on an address, None is all. Raises OSError if the port is taken."""
    if host is None and socket.has_dualstack_ipv6():
        opened = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    else:
        family = socket.AF_INET6 if ":" in (host or "") else socket.AF_INET
        opened = socket.create_server((host or "", port), family=family)
    opened.setblocking(False)
    return opened


class BoundedListener:
    """Accepts at most this many connections at a time."""

    def __init__(self, most: int, longest_s: float | None = None) -> None:
        """A connection lasts `longest_s` at most; None is unlimited."""
        self._share = FairShare(most)
        self._longest_s = longest_s
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def held(self) -> int:
        """Return how many connections there are, with those whose handshake is unfinished."""
        return self._share.held

    async def serve(
        self, opened: socket.socket, factory: Factory, context: ssl.SSLContext | None
    ) -> None:
        """Accept until cancelled; connections of an address beyond its share are closed."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    one, address = await loop.sock_accept(opened)
                except OSError as error:
                    _log.warning("a connection could not be accepted: %s", error)
                    await asyncio.sleep(ACCEPT_AGAIN_S)
                    continue
                self._take(one, owner(str(address[0])), factory, context)
                await asyncio.sleep(0)  # accepting what already waits does not yield
        finally:
            opened.close()
            ending = list(self._connections)
            for task in ending:
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)

    def _take(
        self, one: socket.socket, client: str, factory: Factory, context: ssl.SSLContext | None
    ) -> None:
        if not self._share.fits(client, 1):
            one.close()
            return
        self._share.take(client, 1)
        task = asyncio.get_running_loop().create_task(self._held(one, factory, context))
        self._connections.add(task)
        task.add_done_callback(lambda task: self._gone(task, client))

    async def _held(
        self, one: socket.socket, factory: Factory, context: ssl.SSLContext | None
    ) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._longest_s):
                await _hold(one, factory, context)

    def _gone(self, task: asyncio.Task[None], client: str) -> None:
        self._connections.discard(task)
        self._share.give_back(client, 1)


async def _hold(one: socket.socket, factory: Factory, context: ssl.SSLContext | None) -> None:
    """Return when the connection is closed, or its handshake failed; close it if cancelled."""
    loop = asyncio.get_running_loop()
    within = None if context is None else HANDSHAKE_S
    try:
        transport, _ = await loop.connect_accepted_socket(
            factory, one, ssl=context, ssl_handshake_timeout=within
        )
    except (OSError, TimeoutError):  # without a certificate, or too slow
        one.close()
        return
    except asyncio.CancelledError:
        one.close()
        raise
    try:
        while not transport.is_closing():  # noqa: ASYNC110  (only its protocol is notified)
            await asyncio.sleep(CLOSED_SEEN_AFTER_S)
    except asyncio.CancelledError:
        transport.abort()
        raise


def owner(address: str) -> str:
    """Return the address of a client; a socket for both families shows ::ffff:10.0.0.1."""
    seen = ipaddress.ip_address(address.partition("%")[0])
    mapped = seen.ipv4_mapped if isinstance(seen, ipaddress.IPv6Address) else None
    return str(mapped or seen)


async def serve_pages(factory: Factory, port: int, host: str | None) -> None:
    """Serve pages until cancelled. Raises OSError if the port is taken."""
    opened = listening(port, host)
    await BoundedListener(PAGE_CONNECTIONS, CONNECTED_S).serve(opened, factory, None)
