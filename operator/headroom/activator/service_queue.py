"""The held requests of one service, and the limits of its replicas. Pure."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from headroom.activator.waiting_line import WaitingLine
from headroom.gateway.activator_messages import Served
from headroom.gateway.values import Endpoint

UNKNOWN_START_S = 10.0
"""Assumed duration of a cold start that was never measured."""
LONGEST_START_S = 86_400.0
"""A time in status counts up to a day: `Retry-After` is a whole number."""


@dataclass(slots=True)
class ServiceQueue:
    """The held requests of one service, and the load of its replicas."""

    served: Served
    known: bool = True
    """Whether it was not removed."""
    waiting: WaitingLine = field(default_factory=WaitingLine)
    busy: dict[Endpoint, int] = field(default_factory=dict)
    """Requests in flight by replica."""
    limits: dict[Endpoint, int] = field(default_factory=dict)
    """Reduced in-flight limits of replicas that refused a request."""
    retry_s: dict[Endpoint, float] = field(default_factory=dict)
    """Times when those without an answer since are tried again: a refusal takes a millisecond,
    and each of the requests that wait would be refused in turn."""
    woken_s: float | None = None
    """Time when the first request arrived while there was no replica."""

    def serve(self, served: Served) -> None:
        """Take the service as it is now, and keep the state of its remaining replicas."""
        self.served, self.known = served, True
        if served.replicas:
            self.woken_s = None
        self.limits = {one: most for one, most in self.limits.items() if one in served.replicas}
        self.retry_s = {one: s for one, s in self.retry_s.items() if one in served.replicas}

    @property
    def held(self) -> int:
        """Requests that wait or are being answered."""
        return len(self.waiting) + sum(self.busy.values())

    def warm_in_s(self, now_s: float) -> float:
        """Return the seconds until a replica is expected to be warm."""
        if self.served.replicas:
            return 0.0
        start_s = self.served.cold_start_s
        whole_s = UNKNOWN_START_S if start_s is None else min(start_s, LONGEST_START_S)
        return max(0.0, whole_s - (now_s - (self.woken_s if self.woken_s is not None else now_s)))

    def free(self, now_s: float, refused_by: Container[Endpoint] = ()) -> Endpoint | None:
        """Return the replica with the fewest requests in flight; those in `refused_by` come last.

        None if all are at their limits, or have just refused a request.
        """
        free = (
            one
            for one in self.served.replicas
            if self.busy.get(one, 0) < self.limits.get(one, self.served.in_flight)
            and now_s >= self.retry_s.get(one, now_s)
        )
        return min(free, key=lambda one: (one in refused_by, self.busy.get(one, 0)), default=None)

    def take(self, host: Endpoint) -> None:
        """Count a request as in flight at this replica."""
        self.busy[host] = self.busy.get(host, 0) + 1

    def refused_by(self, host: Endpoint, retry_s: float) -> None:
        """Count a request as ended, lower the replica's limit, and try it again from then on."""
        self.release(host)
        self.limits[host] = max(1, self.busy.get(host, 0))
        self.retry_s[host] = retry_s

    def answered_by(self, host: Endpoint) -> None:
        """Raise the limit of a replica that answered by one."""
        self.retry_s.pop(host, None)
        if host in self.limits:
            self.limits[host] += 1
            if self.limits[host] >= self.served.in_flight:
                del self.limits[host]

    def release(self, host: Endpoint) -> None:
        """Count a request of this replica as ended."""
        left = self.busy.get(host, 0) - 1
        if left > 0:
            self.busy[host] = left
        else:
            self.busy.pop(host, None)
