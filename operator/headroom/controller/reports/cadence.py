"""When status is written: at once where replicas move, else as often as the API server bears. Pure.

services                       100      1000
replicas move, spec changes    at once  at once
anything else that is said     5 s      50 s       after the last write
nothing has changed            60 s     250 s
"""

from __future__ import annotations

from dataclasses import dataclass

HEARTBEAT_S = 60.0
SERVICES_PER_S = 4.0
"""Many services share the API server: heartbeats together are at most so many writes a second."""
CHANGES_PER_S = 20.0
"""And so are other changes: where ticks come late signals go stale by turns, and to write each turn
would make ticks later still."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What status says that somebody acts on."""

    moved: object
    """What is never put off."""
    rest: object = ()


def is_due(
    said: Said, last: Said | None, *, written_s: float | None, now_s: float, services: int
) -> bool:
    """Whether this is to be written, after `last` was at `written_s`; None: never."""
    if last is None or written_s is None or said.moved != last.moved:
        return True
    every_s = services / CHANGES_PER_S
    if said == last:
        every_s = max(HEARTBEAT_S, services / SERVICES_PER_S)
    return not 0.0 <= now_s - written_s < every_s
