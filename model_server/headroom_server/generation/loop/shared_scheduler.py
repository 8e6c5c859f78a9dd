"""State shared by the event loop and the device thread of Headroom's engine, behind one lock."""

from __future__ import annotations

import threading

from headroom_server.generation.scheduling.scheduler import Scheduler


class SharedScheduler:
    """The scheduler, and what was done with it. The lock is not held while a device computes."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        """Its lock guards the scheduler; notified when there may be something to compute."""
        self.scheduler: Scheduler | None = None
        """None until the executor is warm."""
        self.ended: list[int] = []
        """Keys that the executor has to forget."""
        self.stopping = False
        self.busy_s = 0.0
        self.executing_since_s: float | None = None
