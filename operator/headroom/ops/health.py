"""Liveness and readiness of the operator.

It is live unless a restart would help: an unavailable API server is no reason. It is ready when it
can decide, as leader or as follower.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from headroom.controller.controller import Controller
from headroom.ops.checks import Check

STUCK_AFTER_S = 15.0
"""The schedule runs every second.

A loop that does not run it in this time needs a restart.
"""
OVERDUE_AFTER_S = 60.0
"""A tick has a deadline of 20 s and may wait for other ticks; later, the schedule is stuck."""
SILENT_AFTER_S = 60.0
"""The loop of the watch runs every second."""
UNAUTHENTICATED_AFTER_S = 60.0
"""A token that rotates, or an authenticator that restarts, takes less."""
LAG_EVERY_S = 0.5
MOST_LAG_S = 10.0


class LeaderStatus(Protocol):
    """The holder of the lease, as this process knows it."""

    @property
    def leading(self) -> bool:
        """Return whether this process leads."""
        ...

    @property
    def holder(self) -> str:
        """Return the leader; empty if there is none."""
        ...

    @property
    def complaint(self) -> str:
        """Return why the last read or write of the Lease failed; empty if it succeeded."""
        ...


class Watch(Protocol):
    """The watch of InferenceServices."""

    def silent_s(self) -> float:
        """Return the seconds since its loop last ran."""
        ...


class Health:
    """Checks the progress of the operator's loops."""

    def __init__(
        self,
        controller: Controller,
        *,
        prerequisites: Callable[[], tuple[Check, ...]] = tuple,
        leader_status: LeaderStatus | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._controller = controller
        self._prerequisites = prerequisites
        self._leader_status = leader_status
        self._watch = watch
        self._lag_s = 0.0

    def lagged(self, seconds: float) -> None:
        """Set the last delay of the event loop."""
        self._lag_s = seconds

    def livez(self) -> tuple[Check, ...]:
        """Return the checks whose failure a restart would fix."""
        return (
            Check("schedule", self._about_the_schedule()),
            Check("overdue", self._about_what_is_due()),
            Check("event-loop", self._about_the_loop()),
            Check("watch", self._about_the_watch()),
        )

    def readyz(self) -> tuple[Check, ...]:
        """Return the checks of a decision's prerequisites."""
        listed = self._controller.cache.synced.is_set()
        unlisted = (
            "InferenceServices are not listed yet: check that the CustomResourceDefinition is "
            "installed and that the operator may list them"
        )
        return (
            *self._prerequisites(),
            Check("services-listed", "" if listed else unlisted),
            Check("credentials", self._about_the_credentials()),
        )

    def about(self) -> dict[str, Any]:
        """Return the leader, and the namespaces that cannot be read, for information."""
        services: dict[str, Any] = {"services": len(self._controller.cache)}
        if unlisted := self._controller.unlisted:
            services["unlisted"] = dict(unlisted)
        if self._leader_status is None:
            return {"leadership": {"leading": True, "lease": False}, **services}
        leadership = {
            "leading": self._leader_status.leading,
            "lease": True,
            "holder": self._leader_status.holder,
        }
        if self._leader_status.complaint:
            leadership["message"] = self._leader_status.complaint
        return {"leadership": leadership, **services}

    def _about_the_credentials(self) -> str:
        since_s = self._controller.unauthenticated_s()
        if since_s <= UNAUTHENTICATED_AFTER_S:
            return ""
        return (
            "the API server has accepted no credentials of the operator (401) for "
            f"{since_s:.0f} s: check that its ServiceAccount exists, then delete the operator's "
            "pod, which gets a new token; outside a cluster, check its KUBECONFIG"
        )

    def _about_the_schedule(self) -> str:
        scheduler = self._controller.scheduler
        if scheduler is None or scheduler.last_round_s is None:  # another process leads
            return ""
        since_s = asyncio.get_running_loop().time() - scheduler.last_round_s
        if since_s <= STUCK_AFTER_S:
            return ""
        return f"the schedule last ran {since_s:.0f} s ago"

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
        return f"the loop of the watch has not run for {silent_s:.0f} s"


async def watch_loop_lag(*lagged: Callable[[float], None]) -> None:
    """Report twice a second how late the event loop wakes up, until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due_s = loop.time() + LAG_EVERY_S
        await asyncio.sleep(LAG_EVERY_S)
        for report in lagged:
            report(max(0.0, loop.time() - due_s))
