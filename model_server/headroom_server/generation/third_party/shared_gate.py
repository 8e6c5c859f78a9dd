"""The state that the server's loop and the thread of a third-party engine share."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

from headroom_server.generation.third_party.locked_gate import LockedGate
from headroom_server.generation.third_party.traffic import Traffic

log = logging.getLogger("headroom_server")


class SharedGate:
    """The gate with its lock, and how to call the engine's loop."""

    def __init__(self) -> None:
        self.locked: LockedGate | None = None
        """None until the engine is warm."""
        self.traffic: Traffic | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        """The engine's, while it runs."""
        self.stopping = threading.Event()
        self.over = asyncio.Event()
        """Set on the engine's loop."""

    def stop(self) -> None:
        """Ask the engine's thread to end."""
        self.stopping.set()
        self.call(self.over.set)

    def wake(self, call: Callable[[Traffic], None]) -> None:
        """Call a function with the traffic on the engine's loop, once there is one."""
        traffic = self.traffic
        if traffic is not None:
            self.call(lambda: call(traffic))

    def call(self, call: Callable[[], None]) -> None:
        """Call a function on the engine's loop, while it runs."""
        loop = self.loop
        if loop is not None:
            try:
                loop.call_soon_threadsafe(call)
            except RuntimeError:  # it was closed in between: the engine has ended
                log.debug("the engine's loop has ended")
