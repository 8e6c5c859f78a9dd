"""The counters of generating pods: their increases since the scrape before, as one table.

A process that restarts counts from zero again; a new pod begins with its first scrape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.generation.counters.token_increase import Increase
from headroom.scaling.generation.counters.token_table import FIRST_BUCKET, GAUGES, Grid, table_of
from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.mathematics.flags import all_set, any_set
from headroom.scaling.values.observation import PodSample

LONGEST_S = 60.0
"""Counters further apart are no mean of one load."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenCounters:
    """The newest scrape of each pod, also of those that are silent since."""

    grid: Grid = field(default_factory=Grid)
    rows: dict[str, int] = field(default_factory=dict)
    times_s: Vector = field(default_factory=lambda: np.zeros(0))
    scraped: Vector = field(default_factory=lambda: np.zeros((0, FIRST_BUCKET)))
    summed: Vector = field(default_factory=lambda: np.zeros(0))
    """The histograms, over all pods: of the same pods they are subtracted at once."""
    contexts: Vector = field(default_factory=lambda: np.zeros(0))
    """Gauge: tokens in the contexts of running sequences."""
    waiting: Vector = field(default_factory=lambda: np.zeros(0))
    """Gauge: prompt tokens that wait."""

    def advance(self, samples: Sequence[PodSample]) -> tuple[TokenCounters, Increase]:
        """Return the counters with these scrapes, and the increase; old scrapes add nothing.

        The newest of several scrapes of one pod counts. A pod that is not among the samples keeps
        its last one for LONGEST_S, then begins again. So do all where the grid changes, because
        counts on another one cannot be subtracted.
        """
        pages = [one.generation for one in samples if one.generation is not None]
        if not pages:
            return self, Increase()
        grid = self.grid.of(pages)
        if grid != self.grid:
            return TokenCounters(grid=grid).advance(samples)
        if len({one.pod for one in samples}) < len(samples):
            samples = _newest(samples)
        uids, table = table_of(samples, grid)
        known = uids == list(self.rows)
        latest = TokenCounters(
            grid=grid,
            rows=self.rows if known else {uid: number for number, uid in enumerate(uids)},
            times_s=table[:, 0],
            contexts=table[:, 1],
            waiting=table[:, 2],
            scraped=table[:, GAUGES:],
            summed=table[:, GAUGES + FIRST_BUCKET :].sum(axis=0),
        )
        if known and all_set(latest.times_s > self.times_s):
            return latest, _increase_of_all(uids, latest, self)
        return latest._with_silent(self), self._increase(latest, uids)

    def _with_silent(self, before: TokenCounters) -> TokenCounters:
        """Return the counters with the pods that were scraped before, and not long ago."""
        since_s = self.times_s.max() - LONGEST_S
        silent = [
            (uid, number)
            for uid, number in before.rows.items()
            if uid not in self.rows and before.times_s[number] >= since_s
        ]
        if not silent:
            return self
        uids, numbers = zip(*silent, strict=True)
        kept = before._chosen(np.array(numbers))
        scraped = np.concatenate((self.scraped, kept.scraped))
        return TokenCounters(
            grid=self.grid,
            rows={uid: number for number, uid in enumerate((*self.rows, *uids))},
            times_s=np.concatenate((self.times_s, kept.times_s)),
            scraped=scraped,
            summed=scraped[:, FIRST_BUCKET:].sum(axis=0),
            contexts=np.concatenate((self.contexts, kept.contexts)),
            waiting=np.concatenate((self.waiting, kept.waiting)),
        )

    def _increase(self, latest: TokenCounters, uids: Sequence[str]) -> Increase:
        """Return the increase of the pods that were known before and are scraped again."""
        again = [number for number, uid in enumerate(uids) if uid in self.rows]
        if not again:
            return Increase()
        before = [self.rows[uids[number]] for number in again]
        newer = latest.times_s[again] > self.times_s[before]
        after = np.array(again)[newer]
        return _increase(
            [uids[number] for number in after],
            latest._chosen(after),
            self._chosen(np.array(before)[newer]),
        )

    def _chosen(self, numbers: NDArray[np.intp]) -> TokenCounters:
        return TokenCounters(
            grid=self.grid,
            times_s=self.times_s[numbers],
            scraped=self.scraped[numbers],
            contexts=self.contexts[numbers],
            waiting=self.waiting[numbers],
        )


def _newest(samples: Sequence[PodSample]) -> list[PodSample]:
    """Return the newest sample of each pod; of equally old ones the last."""
    newest: dict[str, PodSample] = {}
    for one in samples:
        before = newest.get(one.pod)
        if before is None or before.time_s <= one.time_s:
            newest[one.pod] = one
    return list(newest.values())


def _increase_of_all(uids: Sequence[str], after: TokenCounters, before: TokenCounters) -> Increase:
    """Return the increase of the same pods, with histograms as their sum unless a counter fell."""
    added = after.scraped[:, :FIRST_BUCKET] - before.scraped[:, :FIRST_BUCKET]
    summed = after.summed - before.summed
    if any_set(added < 0) or any_set(summed < 0):
        return _increase(uids, after, before)
    return _increase(uids, after, before, added, summed)


def _increase(
    uids: Sequence[str],
    after: TokenCounters,
    before: TokenCounters,
    added: Vector | None = None,
    summed: Vector | None = None,
) -> Increase:
    """Return the increase between two scrapes of the same pods, row by row."""
    return Increase(
        pods=tuple(uids),
        elapsed_s=after.times_s - before.times_s,
        added=_added(after.scraped, before.scraped) if added is None else added,
        summed=summed,
        context_tokens=(after.contexts + before.contexts) / 2.0,
        waiting_tokens=after.waiting - before.waiting,
    )


def _added(after: Vector, before: Vector) -> Vector:
    """Return the increases of counters; for a restarted process, its counts since the restart."""
    added: Vector = after - before
    below = added < 0
    if any_set(below):
        fell = below.any(axis=1)
        added[fell] = after[fell]
    return added
