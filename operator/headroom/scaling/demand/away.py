"""Bounds the replicas for a queue while a rollout replaces replicas that served.

The others are saturated because they are fewer, and not because clients want more: no more requests
arrive than all replicas carried before. These are enough once they are back, and until then as many
others as are away. Nor does the queue that they left say anything of the clients. Worked: three
replicas of 4/s carry 8/s; a rollout replaces them one by one. Two are saturated, with 20 in flight,
and one more replica is requested. When three are ready again, they are saturated until the queue is
answered, and none is requested, where hidden demand would ask for nine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headroom.scaling.demand.throughput import Throughput
from headroom.scaling.frozen import replace

SETTLED_S = 20.0
"""So long after their number changed, replicas that are not saturated carry the load."""
_ALIKE = 1.1
"""Ratio of arrivals to the carried rate up to which, apart from chance, the two count as equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """The rate that this many ready replicas carried last, without being saturated; 0 before."""

    ready: int = 0
    rate_rps: float = 0.0
    missed: bool = False
    """Whether replicas have been away since then."""

    def observe(self, load: Throughput, rate_rps: float, settled_s: float, away: int) -> Carried:
        """Return the record after a tick; the number of ready replicas is `settled_s` old."""
        if not load.saturated and settled_s >= SETTLED_S:
            return Carried(ready=load.ready, rate_rps=rate_rps)
        return replace(self, missed=True) if away > 0 and not self.missed else self

    def enough(self, load: Throughput, away: int) -> int | None:
        """Return the replicas that carry the arrivals with this many away; None: not known."""
        if not self.missed or not self.ready:
            return None
        if load.arrived > _ALIKE * self.rate_rps * load.window_s + load.noise:
            return None
        return self.ready + away


def away_for(changes: Sequence[tuple[float, int]], ready: int, now_s: float, start_s: float) -> int:
    """Return how many of the requested replicas should be ready since long, and are not.

    `changes` are (time, requested replicas), oldest first; a start takes at most `start_s`.
    """
    requested: int | None = None
    for time_s, replicas in reversed(changes):
        requested = replicas if requested is None else min(requested, replicas)
        if time_s <= now_s - start_s:
            return max(0, requested - ready)
    return 0
