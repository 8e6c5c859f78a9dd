"""When status is written: at once where replicas move, else as often as the API server bears. Pure.

services                       100      1000
replicas move, spec changes    at once  at once
anything else that is key     5 s      50 s       after the last write
nothing has changed            60 s     250 s      each service at a moment of its own

A new process goes on with what stands: it writes at once where replicas move, else each service at
its own moment of its first 5 s or 50 s.
"""

from __future__ import annotations

from dataclasses import dataclass

from headroom.controller.scheduling import tick_period

HEARTBEAT_S = 60.0
SERVICES_PER_S = 4.0
"""Many services share the API server: heartbeats together are at most so many writes a second."""
CHANGES_PER_S = 20.0
"""And so are other changes: where ticks come late signals go stale by turns, and to write each turn
would make ticks later still."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusKey:
    """What status says that somebody acts on."""

    urgent: object
    """What is never put off."""
    other: object = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LastWrite:
    """What status says now."""

    key: StatusKey
    written_s: float | None
    """None: by an earlier process."""
    known_s: float
    """Since when this process knows the service."""


def is_due(
    key: StatusKey, last: LastWrite | None, *, now_s: float, services: int, phase: float
) -> bool:
    """Whether this is to be written where `last` stands; None: nothing does.

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
    every_s = max(HEARTBEAT_S, services / SERVICES_PER_S)
    return now_s >= tick_period.next_slot_s(last.written_s, every_s, phase)
