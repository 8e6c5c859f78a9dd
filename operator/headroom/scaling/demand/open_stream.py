"""Recognizes an open stream by steadily growing requests in flight: its rate is known then.

Clients that wait for answers fill the replicas within a second or two, and then send no more than
they get back. A stream above capacity adds as many requests in each part of a window. While its
queue is worked off, arrivals equal answers within chance, as with waiting clients; but as long as
no more arrive than were counted while the queue grew, nothing is hidden: replicas that carry that
rate are requested already. Worked: 40/s meet one replica of 4/s for 60 s; then 13 replicas answer
52/s, so that the queue shrinks by 48 requests in 4 s, of which chance can hide 18.

A queue that was made while nothing was measured, before a restart or in a gap, may be of either. It
has to be level for `UNSEEN_S`. Worked: eight replicas answer 32/s while 22/s arrive, so
that 40 requests fewer are there after 4 s, of which chance can hide 13, and 320 after 32 s, of
which it can hide 38.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from headroom.scaling.demand.throughput import Throughput
from headroom.scaling.windows.sample_intake import GAP_S

UNSEEN_S = 32.0
"""For so long a queue must be level, at least, that was made while nothing was measured."""
PARTS = 4
"""Parts of a window in each of which the requests in flight must have grown."""
_STEADY = 0.5
"""Growth of each part, at least, of the mean growth."""
_ALIKE = 1.1
"""Ratio of arrivals to the counted rate up to which, apart from chance, the two count as equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStream:
    """The rate of a stream that made a queue, until that queue is answered within the target."""

    points: tuple[tuple[float, int], ...] = ()
    """(time, requests in flight) of the last window, one for each part and its begin."""
    rate_rps: float | None = None
    unseen: bool = False
    """Whether a queue stands that was made while nothing was measured."""

    def observe(self, now_s: float, load: Throughput, tick_s: float, in_time: float) -> OpenStream:
        """Return the knowledge with this tick added; `in_time` requests are answered in time."""
        part_s = load.window_s / PARTS
        seen = bool(self.points) and now_s - self.points[-1][0] <= max(GAP_S, 2.0 * tick_s)
        if self.points and now_s - self.points[-1][0] < part_s - tick_s / 2:
            points = self.points
        else:
            points = (*self.points, (now_s, load.in_flight))[-PARTS - 1 :]
        rate_rps = None if load.in_flight <= in_time else self.rate_rps
        if points is not self.points and _grows(points, load, tick_s):
            rate_rps = load.arrival_rps
        unseen = self.unseen if seen else True
        if rate_rps is not None or load.in_flight <= in_time:
            unseen = False
        return OpenStream(points=points, rate_rps=rate_rps, unseen=unseen)

    def explains(self, load: Throughput) -> bool:
        """Return whether no more requests arrive than were counted while they made the queue."""
        if self.rate_rps is None:
            return False
        return load.arrived <= _ALIKE * self.rate_rps * load.window_s + load.noise


def _grows(points: tuple[tuple[float, int], ...], load: Throughput, tick_s: float) -> bool:
    """Return whether requests in flight grew beyond chance, in all parts of the window."""
    span_s = points[-1][0] - points[0][0]
    if len(points) <= PARTS or span_s > load.window_s + PARTS * tick_s / 2:
        return False
    added = [after - before for (_, before), (_, after) in pairwise(points)]
    total = sum(added)
    beyond_chance = total > math.sqrt(2.0 * load.arrival_rps * span_s)
    return beyond_chance and min(added) >= _STEADY * total / PARTS
