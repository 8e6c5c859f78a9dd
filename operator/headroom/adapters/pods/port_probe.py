"""Checks whether an address accepts TCP connections."""

from __future__ import annotations

import asyncio
import contextlib

WITHIN_S = 0.3


class PortProbe:
    """Connects and disconnects."""

    async def is_open(self, address: str, port: int) -> bool:
        """Return whether a connection is accepted in time."""
        try:
            async with asyncio.timeout(WITHIN_S):
                _, writer = await asyncio.open_connection(address, port)
        except (OSError, TimeoutError):
            return False
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return True
