"""A request that waits or runs, as the queue carries it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headroom_server.connection import Connection
from headroom_server.device.execution import Outputs
from headroom_server.engine import Work
from headroom_server.errors import RequestError
from headroom_server.tracing.current import Trace

Told = Callable[[Outputs | RequestError], object]
"""Who is told how a request ended, once, on the event loop. Raises nothing."""


class Pending:
    """A request's numbers, and whom to tell. Only `work` and `trace` concern the device."""

    __slots__ = ("connection", "counted", "done", "timer", "told", "trace", "work")

    def __init__(
        self,
        work: Work,
        told: Told,
        connection: Connection,
        trace: Trace | None = None,
        *,
        counted: bool = False,
    ) -> None:
        self.work = work
        self.told = told
        self.connection = connection
        self.trace = trace
        """None where it is not sampled."""
        self.counted = counted
        """Whether its end is an outcome. Else it is part of what somebody else counts."""
        self.done = False
        """It has its answer, whatever becomes of its batch."""
        self.timer: asyncio.TimerHandle | None = None
        """Of its deadline, where it has one."""
