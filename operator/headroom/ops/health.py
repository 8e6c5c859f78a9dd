"""Whether the operator lives and is ready, as the kubelet and people ask.

It lives unless a restart would help: an API server that is away is no reason. It is ready when it
could decide, whether it leads or follows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from headroom.controller.controller import Controller
from headroom.ops.checks import Check

STUCK_AFTER_S = 15.0
"""The schedule is looked at every second.

A loop that does not get there in this time needs a restart.
"""
OVERDUE_AFTER_S = 60.0
"""A tick has a deadline of 20 s and may wait for others; beyond this the schedule does not work."""
SILENT_AFTER_S = 60.0
"""The loop of the watch turns every second."""
LAG_EVERY_S = 0.5
MOST_LAG_S = 10.0


class Standing(Protocol):
    """Who holds the lease, as far as this process knows."""

    @property
    def leading(self) -> bool:
        """Whether this process does."""
        ...

    @property
    def holder(self) -> str:
        """Who does; empty: nobody."""
        ...

    @property
    def complaint(self) -> str:
        """Why the Lease could not be read or written last time; empty: it could."""
        ...


class Watch(Protocol):
    """What brings the changes of services."""

    def silent_s(self) -> float:
        """How long it has not turned."""
        ...


class Health:
    """Reads the progress of everything that runs."""

    def __init__(
        self,
        controller: Controller,
        *,
        prerequisites: Callable[[], tuple[Check, ...]] = tuple,
        standing: Standing | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._controller = controller
        self._prerequisites = prerequisites
        self._standing = standing
        self._watch = watch
        self._lag_s = 0.0

    def lagged(self, seconds: float) -> None:
        """Take in by how much the event loop was late just now."""
        self._lag_s = seconds

    def livez(self) -> tuple[Check, ...]:
        """Check what a restart would mend."""
        return (
            Check("schedule", self._about_the_schedule()),
            Check("overdue", self._about_what_is_due()),
            Check("event-loop", self._about_the_loop()),
            Check("watch", self._about_the_watch()),
        )

    def readyz(self) -> tuple[Check, ...]:
        """Check what it needs to decide."""
        listed = self._controller.cache.synced.is_set()
        unlisted = (
            "InferenceServices were not listed yet: is the CustomResourceDefinition there, and "
            "may they be listed?"
        )
        return (*self._prerequisites(), Check("services-listed", "" if listed else unlisted))

    def about(self) -> dict[str, Any]:
        """Say who leads; neither is bad."""
        services = {"services": len(self._controller.cache)}
        if self._standing is None:
            return {"leadership": {"leading": True, "lease": False}, **services}
        leadership = {
            "leading": self._standing.leading,
            "lease": True,
            "holder": self._standing.holder,
        }
        if self._standing.complaint:
            leadership["message"] = self._standing.complaint
        return {"leadership": leadership, **services}

    def _about_the_schedule(self) -> str:
        scheduler = self._controller.scheduler
        if scheduler is None or scheduler.last_round_s is None:  # somebody else decides
            return ""
        since_s = asyncio.get_running_loop().time() - scheduler.last_round_s
        if since_s <= STUCK_AFTER_S:
            return ""
        return f"the schedule was last looked at {since_s:.0f} s ago"

    def _about_what_is_due(self) -> str:
        scheduler = self._controller.scheduler
        overdue_s = 0.0 if scheduler is None else scheduler.overdue_s()
        return f"a service is overdue by {overdue_s:.0f} s" if overdue_s > OVERDUE_AFTER_S else ""

    def _about_the_loop(self) -> str:
        if self._lag_s <= MOST_LAG_S:
            return ""
        return f"the event loop woke up {self._lag_s:.0f} s late"

    def _about_the_watch(self) -> str:
        silent_s = 0.0 if self._watch is None else self._watch.silent_s()
        if silent_s <= SILENT_AFTER_S:
            return ""
        return f"the loop of the watch has not turned for {silent_s:.0f} s"


async def watch_loop_lag(*lagged: Callable[[float], None]) -> None:
    """Report, twice a second, by how much the event loop wakes up late. Runs until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due_s = loop.time() + LAG_EVERY_S
        await asyncio.sleep(LAG_EVERY_S)
        for tell in lagged:
            tell(max(0.0, loop.time() - due_s))
