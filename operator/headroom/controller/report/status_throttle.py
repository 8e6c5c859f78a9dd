"""Throttle of status writes: at once if replicas move, else as the API server's load allows. Pure.

services                               60       100      1000
replicas move, spec changes            at once  at once  at once
any other change of conditions, counts 3 s      5 s      50 s     after the last write
latency, rate or utilization by 10 %   15 s     25 s     250 s    after the last write
nothing has changed                    60 s     60 s     250 s    at a moment of each service's own

So all refreshes together are at most 4 writes a second; 15 s for 1000 services would be 67. A new
process continues: it writes at once if replicas move, else each service at its own moment of its
first 3 s, 5 s or 50 s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from headroom.controller.scheduling import tick_period

HEARTBEAT_S = 60.0
FIGURES_S, FIGURES_MOVED = 15.0, 0.1
"""Figures that moved by more than this share are refreshed after so long."""
SERVICES_PER_S = 4.0
"""Many services share the API server: refreshes are at most this many writes a second in total."""
CHANGES_PER_S = 20.0
"""The same for other changes: when ticks are late, metrics become stale by turns, and to write each
turn would make ticks later still."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusKey:
    """Parts of the status that users act on."""

    urgent: object
    """Written at once when it changes."""
    other: object = ()
    figures: tuple[float | None, ...] = field(default=(), compare=False)
    """Latency, arrival rate, utilization."""

    def figures_moved(self, before: StatusKey) -> bool:
        """Return whether a figure moved by more than FIGURES_MOVED, or became known or unknown."""
        if len(self.figures) != len(before.figures):
            return True
        return any(map(_moved, before.figures, self.figures))


@dataclass(frozen=True, slots=True, kw_only=True)
class LastWrite:
    """The status as it is stored."""

    key: StatusKey
    written_s: float | None
    """None: an earlier process wrote it."""
    known_s: float
    """Time when this process first saw the service."""


def is_due(
    key: StatusKey, last: LastWrite | None, *, now_s: float, services: int, phase: float
) -> bool:
    """Return whether to write now; `last` is None before the first write.

    `phase` (0 to 1) is that of the service.
    """
    if last is None or key.urgent != last.key.urgent:
        return True
    turn_s = services / CHANGES_PER_S
    if last.written_s is None:
        return not 0.0 <= now_s - last.known_s < phase * turn_s
    if now_s < last.written_s:  # the clock went back
        return True
    if key != last.key:
        return now_s - last.written_s >= turn_s
    if key.figures_moved(last.key):
        return now_s - last.written_s >= max(FIGURES_S, services / SERVICES_PER_S)
    every_s = max(HEARTBEAT_S, services / SERVICES_PER_S)
    return now_s >= tick_period.next_slot_s(last.written_s, every_s, phase)


def _moved(before: float | None, after: float | None) -> bool:
    if before is None or after is None or math.isinf(before) or math.isinf(after):
        return before != after
    return abs(after - before) > FIGURES_MOVED * max(before, after)
