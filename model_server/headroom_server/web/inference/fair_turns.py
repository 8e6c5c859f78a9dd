"""A lock whose waiters take turns by client, and within a client by tenant.

In order of arrival, a client with a thousand requests would make every other one wait for all of
them. A client is its address, which it cannot choose; behind a gateway all have its address, and
the tenants are those that it names.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

Waiter = asyncio.Future[None]
_Tenants = OrderedDict[str, deque[Waiter]]


class FairTurns:
    """A lock whose waiters take turns."""

    def __init__(self) -> None:
        self._busy = False
        self._clients: OrderedDict[str, _Tenants] = OrderedDict()

    @asynccontextmanager
    async def turn(self, client: str, tenant: str = "") -> AsyncIterator[None]:
        """Wait for a turn, which lasts until the end of the block."""
        if self._busy:
            await self._wait(client, tenant)
        self._busy = True
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, client: str, tenant: str) -> None:
        waiter: Waiter = asyncio.get_running_loop().create_future()
        tenants = self._clients.setdefault(client, OrderedDict())
        tenants.setdefault(tenant, deque()).append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():  # its turn had come
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._clients:
            waiter = self._next()
            if not waiter.done():
                waiter.set_result(None)  # still busy: with the next one
                return
        self._busy = False

    def _next(self) -> Waiter:
        """Remove the next waiter; its client and its tenant go behind all others."""
        client, tenants = self._clients.popitem(last=False)
        tenant, waiters = tenants.popitem(last=False)
        waiter = waiters.popleft()
        if waiters:
            tenants[tenant] = waiters
        if tenants:
            self._clients[client] = tenants
        return waiter
