"""The port of what the process serves: its life, from warm to drained."""

from __future__ import annotations

from typing import Protocol


class Served(Protocol):
    """Interface of a served model, with its lifecycle."""

    @property
    def warm(self) -> bool:
        """Whether everything is loaded."""

    @property
    def begun(self) -> bool:
        """Whether something accepts requests, so that there is something to drain."""

    @property
    def impaired(self) -> bool:
        """Whether a device was lost."""

    async def failed(self) -> object:
        """Wait until something cannot execute any more."""

    def drain(self) -> None:
        """Become unready."""

    def close_intake(self) -> None:
        """Refuse new requests from now on."""

    async def wait_idle(self) -> None:
        """Wait until every accepted request has ended."""

    def abandon(self) -> int:
        """Fail every request in flight; return how many."""

    def stop(self) -> None:
        """Ask all device threads to end."""

    def watch(self) -> None:
        """Detect hanging devices."""
