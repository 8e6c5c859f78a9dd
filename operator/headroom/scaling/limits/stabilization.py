"""Remembers desired replicas: the extreme of a sliding window, and how much of it was observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingExtreme:
    """Largest or smallest value of a sliding window, in amortized constant time.

    Entries that can never be the extreme again are dropped at once (monotonic queue; compare the
    ascending minima of Knative's max window), so a long window needs little memory.
    """

    keep: Literal["largest", "smallest"]
    entries: tuple[tuple[float, int], ...] = ()
    """(time, value), oldest first; values strictly fall (largest) or rise (smallest)."""

    def add(self, time_s: float, value: int, window_s: float) -> SlidingExtreme:
        """Return the window with a value added and everything older than `window_s` dropped."""
        sign = 1 if self.keep == "largest" else -1
        kept = tuple(
            (then_s, old)
            for then_s, old in self.entries
            if then_s >= time_s - window_s and sign * old > sign * value
        )
        return SlidingExtreme(keep=self.keep, entries=(*kept, (time_s, value)))

    def since(self, time_s: float) -> int | None:
        """Return the extreme of the values added at this time or later; None if there are none."""
        return next((value for then_s, value in self.entries if then_s >= time_s), None)

    @property
    def value(self) -> int | None:
        """The extreme; None before the first value."""
        return self.entries[0][1] if self.entries else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Period for which the inputs of a removal have been known without a gap."""

    since_s: float | None = None
    until_s: float = 0.0

    def seen(self, time_s: float, longest_gap_s: float) -> Coverage:
        """Return the coverage with this instant known; a gap longer than allowed restarts it."""
        if self.since_s is None or time_s - self.until_s > longest_gap_s:
            return Coverage(since_s=time_s, until_s=time_s)
        return Coverage(since_s=self.since_s, until_s=time_s)

    def length_s(self, time_s: float) -> float:
        """Seconds known without a gap up to now."""
        return 0.0 if self.since_s is None else time_s - self.since_s
