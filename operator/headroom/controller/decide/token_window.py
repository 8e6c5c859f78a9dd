"""The last minute of one cumulative histogram, over all pods of a service. Pure.

A pod's first page is a baseline, unless its server has no histogram yet: then it begins at zero. A
count that falls means that the process restarted from zero. A pod that does not answer adds
nothing. What was counted later than now is of a clock that stepped back, and is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.windows.histogram import percentile, undecided

WINDOW_S = 60.0
"""Generating takes seconds, so the decision's 30 s would hold too few requests."""

_Counts = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenWindow:
    """Counts of a window, tick by tick."""

    bounds_s: tuple[float, ...] = ()
    last: Mapping[str, LatencyCounts | None] = field(default_factory=dict)
    """The newest page of each pod; None where it had no histogram yet."""
    added: tuple[tuple[float, _Counts], ...] = ()
    """(time, counts) of each tick with requests, oldest first."""

    def observe(self, pages: Mapping[str, LatencyCounts | None], now_s: float) -> TokenWindow:
        """Return the window with the newest page of each pod."""
        bounds_s = next((page.bounds_s for page in pages.values() if page), self.bounds_s)
        before = self if bounds_s == self.bounds_s else self._with_bounds(bounds_s)
        total = _grown(
            [
                (page, before.last[pod])
                for pod, page in pages.items()
                if page is not None and page.bounds_s == bounds_s and pod in before.last
            ],
            len(bounds_s),
        )
        added = tuple(one for one in before.added if now_s - WINDOW_S < one[0] <= now_s)
        if total.any():
            added = (*added, (now_s, total))
        return TokenWindow(bounds_s=bounds_s, last=dict(pages), added=added)

    def _with_bounds(self, bounds_s: tuple[float, ...]) -> TokenWindow:
        """Start over with other bounds; a pod without a histogram yet still begins at zero."""
        empty = {pod: None for pod, page in self.last.items() if page is None}
        return TokenWindow(bounds_s=bounds_s, last=empty)

    @property
    def requests(self) -> float:
        """Number of counted requests."""
        return sum(float(counts[-1]) for _, counts in self.added)

    def latest(self, now_s: float) -> _Counts | None:
        """Return the counts of this tick; None without requests."""
        if not self.added or self.added[-1][0] != now_s:
            return None
        return self.added[-1][1]

    @property
    def total(self) -> _Counts | None:
        """Counts of the window; None without requests."""
        return np.sum([counts for _, counts in self.added], axis=0) if self.added else None

    def percentile_s(self, ratio: float) -> float | None:
        """Return the time that this share did not exceed; None where nothing was counted."""
        total = self.total
        return None if total is None else percentile(self.bounds_s, total, 0.0, ratio)

    def undecided_s(self, ratio: float, target_s: float) -> tuple[float, float] | None:
        """Return the bounds of a coarse bucket with both this percentile and the target."""
        total = self.total
        return None if total is None else undecided(self.bounds_s, total, 0.0, ratio, target_s)


def _grown(pairs: Sequence[tuple[LatencyCounts, LatencyCounts | None]], size: int) -> _Counts:
    """Return the increase over all pods, from one table: a thousand small arrays take 0.1 s."""
    if not pairs:
        return np.zeros(size)
    nothing = (0.0,) * size
    after = _table([page.counts for page, _ in pairs], size)
    before = _table([nothing if old is None else old.counts for _, old in pairs], size)
    restarted = before[:, -1:] > after[:, -1:]
    grown = np.maximum(0.0, after - np.where(restarted, 0.0, before))
    total: _Counts = grown.sum(axis=0)
    return total


def _table(rows: Sequence[tuple[float, ...]], size: int) -> _Counts:
    """Return the counts, [pods, bounds]; packed by `struct`, which is faster than tuples."""
    pack = Struct(f"{size}d").pack
    return np.frombuffer(b"".join([pack(*row) for row in rows])).reshape(-1, size)
