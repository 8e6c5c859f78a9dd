"""A request that waits or runs, as the queue carries it."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from headroom_server.device.execution import Outputs
from headroom_server.engine import Work
from headroom_server.tracing.current import Trace


class Pending(NamedTuple):
    """A request's numbers, and the future on which its answer is awaited."""

    work: Work
    answer: asyncio.Future[Outputs]
    trace: Trace | None = None
    """None where it is not sampled."""
