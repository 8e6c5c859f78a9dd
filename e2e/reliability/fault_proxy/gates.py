"""Gates that hold a request in the fault proxy, before or after the API server gets it."""

from __future__ import annotations

from typing import Protocol

from reliability.fault_proxy.calls import Call


class Gate(Protocol):
    """Sees every request go by and may hold it."""

    async def before(self, call: Call) -> None:
        """Wait before the API server is asked."""
        ...

    async def after(self, call: Call, code: int) -> None:
        """Wait before what it answered is passed on."""
        ...


class Open:
    """Holds nothing."""

    async def before(self, call: Call) -> None:
        """Go on."""

    async def after(self, call: Call, code: int) -> None:
        """Go on."""
