"""Separates requests that fail at any load from those that fail for lack of replicas. Pure.

A request fails for lack of replicas where a queue is full, or where it waits until its client gives
up. That comes in runs, meets some replicas more than others, and what was answered meanwhile has
waited, too. Errors of a model do none of this: they are as large a share of the requests at all
times but for chance, at all replicas, and where nothing waits. So the share that fails in all three
is not cured by more replicas. It is a lower bound, and unknown where there is a queue all the time.
Worked: 10 % fail in each of 16 ticks, at each of 5 replicas that answer within 0.15 s, where two
full batches take 0.22 s: 10 % are errors. If 80 % fail in every fourth tick, none are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.values.observation import CostModel
from headroom.scaling.windows.counter_series import LATENCY, MISSED
from headroom.scaling.windows.histogram import answered_within
from headroom.scaling.windows.sliding_windows import Windows

_LEAST_REQUESTS = 50.0
_LEAST, _MOST = 4, 16
"""Ticks that are compared: fewer with few requests are taken together."""
_MOST_UNEVEN = 2.0
"""Variance of the failures in a tick over that of independent ones: what a full queue refuses
comes in runs, also where it never empties."""
_KEPT_S = 120.0
_BATCHES = 2.0
"""Batches: the one under way when a request arrives, and its own."""
_NEAR_TARGET = 0.75
"""Share of the target: what is answered later may have waited up to its deadline."""
_SLOW = 0.02
"""Share of the answers: as executions vary, and as buckets are wide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Failures of the latest ticks at replicas without a queue of half a batch."""

    ticks: tuple[tuple[float, float, float], ...] = ()
    """(time, ended, failed), oldest first; none failed where each replica had a queue."""

    def observe(
        self, windows: Windows, cost: CostModel | None, target_s: float, now_s: float
    ) -> Failures:
        """Return the record after a tick; without a cost the usual time of an answer is unknown."""
        added = windows.series.added
        if cost is None or not windows.bounds_s or not len(added):
            return self
        latency = added[:, LATENCY:]
        quick_s = _BATCHES * (1.0 + cost.cv) * cost.batch_s(cost.max_batch)
        quick = answered_within(windows.bounds_s, latency, min(quick_s, _NEAR_TARGET * target_s))
        answered, batch = latency[:, -1], cost.slots * cost.max_batch
        last = windows.latest(windows.series.columns)
        free = np.array([2 * one.waiting < batch for one in last])
        free &= (answered > 0.0) & (answered - quick <= _SLOW * answered)
        failed = float(added[free, MISSED].sum())
        newest = (now_s, float(answered[free].sum()) + failed, failed)
        if not free.any():  # a tick without evidence
            newest = (now_s, float((answered + added[:, MISSED]).sum()), 0.0)
        first = 0
        while first < len(self.ticks) and now_s - self.ticks[first][0] > _KEPT_S:
            first += 1
        ticks = list(self.ticks[first:])
        if ticks and ticks[-1][1] < _LEAST_REQUESTS:
            at_s, *before = ticks.pop()
            newest = (at_s, before[0] + newest[1], before[1] + newest[2])
        return Failures(ticks=(*ticks[1 - _MOST :], newest))

    def share(self, windows: Windows, window_s: float) -> float:
        """Return the share of requests that fails whatever the load; 0 while unknown."""
        if len(self.ticks) < _LEAST or sum(failed for _, _, failed in self.ticks) < 1.0:
            return 0.0  # a counter's fraction of a request is no failure
        counted = windows.counted(window_s)
        answered, missed = counted[:, -1], counted[:, MISSED]
        at_work = answered > 0.0
        if not at_work.any():
            return 0.0
        ended, failed = np.array([tick[1:] for tick in self.ticks]).T
        if _dispersion(ended.clip(1.0), failed) > _MOST_UNEVEN:
            return 0.0
        by_replica = (missed / (answered + missed).clip(1e-9))[at_work]
        return min(_usual(by_replica), _usual(failed / ended.clip(1.0)))


def _dispersion(ended: Vector, failed: Vector) -> float:
    """Return the variance of the failures of a tick over that of independent ones (chi squared)."""
    share = float(failed.sum() / ended.sum())
    expected = share * ended
    return float(((failed - expected) ** 2 / expected).sum()) / (len(ended) - 1) / (1.0 - share)


def _usual(shares: Vector) -> float:
    return float(np.sort(shares)[len(shares) // 4])
