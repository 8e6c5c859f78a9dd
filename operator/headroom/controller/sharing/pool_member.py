"""One service of a pool: the accelerators that it holds and lacks, and since when. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headroom.scaling.accelerator_allocation import Demand
from headroom.scaling.limits.stabilization import SlidingExtreme

HOLD_S = 30.0
"""A replica that was missing for this long may take another service's."""
ATTENDED_S = 60.0
"""A service that has not ticked for this long (an invalid spec, say) can yield nothing."""
NOTHING = SlidingExtreme(keep="smallest")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A service at its tick. `demand.overdue` is found by the pool."""

    title: str
    """The service as text."""
    demand: Demand
    leaving: int = 0
    """Replicas that are on their way out and still hold their accelerators."""
    refused: int = 0
    """Replicas that the scheduler refuses for want of accelerators."""
    writable: bool = True
    """Whether its replicas can be changed: else it yields nothing."""

    @property
    def held(self) -> int:
        """Accelerators that its replicas hold."""
        return self.demand.accelerators * (self.demand.allocated + self.leaving)


@dataclass(slots=True)
class Member:
    """One service of the pool."""

    seen: Seen
    seen_s: float
    short: SlidingExtreme = NOTHING
    """Replicas missing."""
    short_since_s: float | None = None
    free_since_s: float | None = None
    """Time since which what it lacks has been free, and it still lacks it."""
    barred_until_s: float = 0.0
    granted: SlidingExtreme = NOTHING
    """Replicas granted at the times at which they were fewer than it wants."""
    preempted: str = ""

    @property
    def title(self) -> str:
        """The service as text, with its priority."""
        return f"{self.seen.title} (priority {self.priority})"

    @property
    def priority(self) -> int:
        """scaling.priority of its spec."""
        return self.seen.demand.priority

    def look(self, seen: Seen, now_s: float, *, withheld: bool) -> None:
        """Process a tick; a service with less than it needs is short, also without pending pods."""
        self.seen, self.seen_s, short = seen, now_s, seen.refused
        if withheld:
            short = max(short, seen.demand.desired - seen.demand.allocated)
        if self.short.entries and short < self.short.entries[-1][1]:
            self.free_since_s, self.barred_until_s = None, 0.0
        if short == 0:
            self.short_since_s, self.preempted = None, ""
        elif self.short_since_s is None:
            self.short_since_s = now_s
        self.short = self.short.add(now_s, short, HOLD_S)

    def overdue(self, now_s: float) -> int:
        """Replicas that have been missing throughout the hold."""
        if self.short_since_s is None or now_s - self.short_since_s < HOLD_S:
            return 0
        return 0 if now_s < self.barred_until_s else self.short.since(now_s - HOLD_S) or 0

    def demand(self, overdue: int, now_s: float) -> Demand:
        """Return its demand."""
        demand = self.seen.demand
        attended = now_s - self.seen_s < ATTENDED_S
        floor = demand.floor if attended else max(demand.floor, demand.allocated)
        return replace(demand, overdue=overdue, floor=floor)
