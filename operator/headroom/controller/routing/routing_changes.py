"""Wakes the loops of routing for changes of services and pods, and for gateways that come or go."""

from __future__ import annotations

import asyncio
from contextlib import suppress

BOUNDS_EVERY_S = 5.0
LOOK_EVERY_S = 0.2
"""A hanging gateway is noticed after this; a killed one closes its stream and is noticed at once,
a second before its pod's status changes."""


class RoutingChanges:
    """Notes changes, and waits for them."""

    def __init__(self) -> None:
        self._dirty = asyncio.Event()
        self._left = asyncio.Event()

    def changed(self) -> None:
        """Note that a service, its status or a replica has changed."""
        self._dirty.set()

    def gateway_left(self) -> None:
        """Note that a gateway closed its stream: the gateways are probed now."""
        self._left.set()

    def gateways_changed(self) -> None:
        """Note that the pods of the gateways have changed."""
        self._dirty.set()
        self._left.set()

    async def until_look(self) -> bool:
        """Wait for the next probe; return whether a gateway has come or gone."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_EVERY_S):
                await self._left.wait()
        changed = self._left.is_set()
        self._left.clear()
        return changed

    async def until_changed(self) -> None:
        """Wait for a change; bounds follow the learned cost, which is not announced."""
        with suppress(TimeoutError):
            async with asyncio.timeout(BOUNDS_EVERY_S):
                await self._dirty.wait()
        self._dirty.clear()
