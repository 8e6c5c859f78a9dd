"""Backs off while another client overwrites the operator's writes: replicas, or a child. Pure.

One change by another client is kept until the decision changes. Three overwrites of
what we wrote within ten minutes start a pause: nothing is written for five minutes, then one more
write is tried, and each further overwrite doubles the pause.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

UNDONE = 3
UNKNOWN_WRITER = "another client"
WITHIN_S = 600.0
FIRST_PAUSE_S = 300.0
LONGEST_PAUSE_S = 3600.0

Written = TypeVar("Written")
"""A written value: a replica count, or a digest of fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverwriteBackoff(Generic[Written]):
    """State of the pauses after overwrites; an immutable value, replaced at each tick."""

    ours: Written | None = None
    """Value that the operator wrote and no other client has changed since."""
    wrote_s: float = 0.0
    by: str = ""
    """Client that overwrote the operator's value; empty while that value is in force."""
    instead: Written | None = None
    """Value that the operator had written then."""
    undone_s: tuple[float, ...] = ()
    """Time when the operator's value was overwritten, within WITHIN_S."""
    until_s: float = 0.0
    """Nothing is written before."""
    pause_s: float = 0.0
    """The last pause; 0: the value stayed in force."""

    def observe(
        self, value: Written, writer: str, *, by_us: bool, now_s: float
    ) -> OverwriteBackoff[Written]:
        """Observe the present value, and its writer by managed fields.

        They decide what the operator wrote, also after a restart or a lost response to a write.
        """
        if by_us and value != self.ours:
            return self.written(value, now_s)
        if self.ours is None:
            return self
        if value == self.ours:
            calm = now_s - self.wrote_s >= WITHIN_S
            return replace(self, pause_s=0.0, undone_s=()) if calm and self.pause_s else self
        changed = replace(self, ours=None, by=writer or UNKNOWN_WRITER, instead=self.ours)
        undone_s = (*(at_s for at_s in self.undone_s if now_s - at_s < WITHIN_S), now_s)
        if len(undone_s) < UNDONE and not self.pause_s:
            return replace(changed, undone_s=undone_s)
        pause_s = min(max(2.0 * self.pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
        return replace(changed, undone_s=(), pause_s=pause_s, until_s=now_s + pause_s)

    def written(self, value: Written, now_s: float) -> OverwriteBackoff[Written]:
        """Note the value that the operator wrote."""
        return replace(self, ours=value, wrote_s=now_s, by="")

    def is_paused(self, now_s: float) -> bool:
        """Return whether writes are paused; a clock that goes back ends the pause in time."""
        return 0.0 < self.until_s - now_s <= self.pause_s
