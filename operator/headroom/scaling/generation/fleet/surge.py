"""Replicas for a surge: for the arrivals, and for the backlog of replicas that have fallen behind.

While replicas are too few, requests queue at them, first come, first served, and all are late. They
stay where they are: a replica that becomes ready takes none of them. Routing that sees load sends
it all that arrives instead, until the others have worked off their queues. So the promise holds
again at once if the new replicas alone carry the arrivals:

    N = behind + rate / mu'      or, if that is less,      N = (rate + Q / D) / mu'

with what one replica carries within its promises (mu') and the queue Q worked off within D, which
suffices for a short one. Routing that does not see load needs the latter.

A replica is behind with more in flight than fits and than its target lets it work off. Before that
shows, all ready replicas will be if the queue until warming, or further, replicas are ready is:

    Q(T) = n - k r + rate T - sum_r mu_r T - mu sum_w (T - left_w)

n requests in flight, k that fit at each of r ready replicas, left_w the rest of the start of a
warming one, mu what one takes at most; of a replica with a queue, mu_r is what it serves while its
memory is full (`rates`). Worked: 4 replicas of 90/s, 528/s arrive, start 100 s: 16 800
will wait. 4 + 6 replicas end the misses with the start; 6 alone would after three further minutes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from headroom.scaling.frozen import cached_property

DEVIATIONS = 2.0
LEAST_DRAIN_S, MOST_DRAIN_S = 10.0, 60.0
DRAIN_SHARE = 1 / 3
"""Share of the start: a shorter time would cost more replicas than the start it adds to is
worth."""


def surely_rps(burst_rps: float, window_s: float) -> float:
    """Return the rate that a window of a burst shows beyond chance, at least 0.

    It is extended over a whole start, so a clump must not count as more. Worked: 15 requests in 4 s
    are 3.75/s, and surely 1.8/s; 1500 are 375/s, and surely 356/s.
    """
    return max(0.0, burst_rps - DEVIATIONS * math.sqrt(max(0.0, burst_rps) / window_s))


@dataclass(frozen=True, kw_only=True)
class Surge:
    """The ready and the starting replicas, and the load that they are to serve."""

    arrival_rps: float
    in_flight: Sequence[float]
    """Requests in flight of each ready replica."""
    left_s: Sequence[float]
    """The rest of the start of each warming replica."""
    start_s: float
    most_rps: float
    """Most that one replica takes."""
    saturated_rps: float
    """Rate of one with a queue."""
    fit: float
    """Requests that may be in flight at one within its promises."""
    target_s: float
    """Most that an answer may wait for its start."""
    rejected: bool = False
    """Whether a gateway rejects what would wait longer: then no queue is left to work off."""

    @cached_property
    def queue(self) -> float:
        """The requests that will wait when warming or further replicas are ready; at least 0."""
        return max(self._queue_at(self.start_s), self._queue_at(max(self.left_s, default=0.0)))

    @property
    def behind(self) -> int:
        """Ready replicas that have a queue, or will have when others are ready."""
        ready = len(self.in_flight)
        late = self.saturated_rps * self.target_s
        if self.queue > ready * late and self._queue_at(0.0) <= ready * late:  # not yet
            return ready
        return sum(waits > late for waits in self._waits)

    @cached_property
    def _waits(self) -> list[float]:
        """Requests in front of each full replica."""
        return [count - self.fit for count in self.in_flight if count > self.fit]

    def _queue_at(self, time_s: float) -> float:
        waits = self._waits
        full, waiting = len(waits), sum(waits)
        free_s = (len(self.in_flight) - full) * time_s
        free_s += sum(max(0.0, time_s - left) for left in self.left_s)
        served = self.saturated_rps * full * time_s + self.most_rps * free_s
        return max(0.0, waiting + self.arrival_rps * time_s - served)

    @property
    def drain_s(self) -> float:
        """The time in which added replicas work off the queue that has waited for them."""
        return min(MOST_DRAIN_S, max(LEAST_DRAIN_S, DRAIN_SHARE * self.start_s))

    def replicas(self, capacity_rps: float, *, sees_load: bool) -> int:
        """Return the replicas, where each carries this much; 0 while no queue is to come."""
        if self.queue < 1.0 or capacity_rps <= 0.0:
            return 0
        if self.rejected:
            return math.ceil(self.arrival_rps / capacity_rps - _ROUNDING)
        drained = (self.arrival_rps + self.queue / self.drain_s) / capacity_rps
        if sees_load:
            drained = min(drained, self.behind + self.arrival_rps / capacity_rps)
        return math.ceil(drained - _ROUNDING)


_ROUNDING = 1e-9
