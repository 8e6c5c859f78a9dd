"""Whether the operator lives and is ready, as the kubelet asks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headroom.controller.controller import Controller

STUCK_AFTER_S = 15.0
"""The schedule is looked at every second.

A loop that does not get there in this time needs a restart.
"""
OVERDUE_AFTER_S = 60.0
"""A tick has a deadline of 20 s and may wait for others; beyond this the schedule does not work."""
LAG_EVERY_S = 0.5


class Health:
    """Reads the controller's progress."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def complaint(self) -> str:
        """Say why the process should be restarted; empty while it should not."""
        scheduler = self._controller.scheduler
        if scheduler is None:  # somebody else decides
            return ""
        now_s = asyncio.get_running_loop().time()
        last_s = scheduler.last_round_s
        if last_s is not None and now_s - last_s > STUCK_AFTER_S:
            return f"the schedule was last looked at {now_s - last_s:.0f} s ago"
        overdue_s = scheduler.overdue_s()
        if overdue_s > OVERDUE_AFTER_S:
            return f"a service is overdue by {overdue_s:.0f} s"
        return ""

    def unready(self) -> str:
        """Say what the operator still waits for; empty when it is ready."""
        if not self._controller.cache.synced.is_set():
            return "InferenceServices were not listed yet: is the CustomResourceDefinition there?"
        return ""


async def watch_loop_lag(lagged: Callable[[float], None]) -> None:
    """Report, twice a second, by how much the event loop wakes up late. Runs until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due_s = loop.time() + LAG_EVERY_S
        await asyncio.sleep(LAG_EVERY_S)
        lagged(max(0.0, loop.time() - due_s))
