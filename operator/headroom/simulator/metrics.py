"""The Prometheus of the peers: per-pod series at the scrape interval, with PromQL's queries.

A pod that was not in the last scrape has no instant value (a stale marker), but its samples stay in
range queries. Nothing is interpolated.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.windows.histogram import percentile
from headroom.simulator.compiled.plant_layout import BOUNDS_S, COLUMNS, Column

Row = NDArray[np.float64]
"""One scrape of one pod: the columns, then one count per latency bucket (not cumulative)."""


class Metrics:
    """A store of samples that drops those older than its horizon."""

    def __init__(self, horizon_s: float = 900.0) -> None:
        self._horizon_s = horizon_s
        self._times: dict[str, list[float]] = {}
        self._rows: dict[str, list[Row]] = {}
        self._present: tuple[str, ...] = ()
        self._forgot_s = -np.inf
        self.scraped_s: float | None = None
        """Time when the last scrape happened; None before the first and after a restart."""

    def scrape(self, now_s: float, uids: Sequence[str], rows: Row) -> None:
        """Add one row for each pod that answered, [pods, columns + buckets]."""
        self.scraped_s = now_s
        self._present = tuple(uids)
        for uid, row in zip(uids, rows, strict=True):
            self._times.setdefault(uid, []).append(now_s)
            self._rows.setdefault(uid, []).append(row)
        if now_s - self._forgot_s >= self._horizon_s / 10:
            self._forgot_s = now_s
            self._forget(now_s - self._horizon_s)

    def restart(self) -> None:
        """Lose all samples."""
        self.__init__(self._horizon_s)  # type: ignore[misc]

    def _forget(self, before_s: float) -> None:
        for uid in list(self._times):
            times = self._times[uid]
            if times[-1] < before_s:
                del self._times[uid], self._rows[uid]
            else:
                keep = bisect_left(times, before_s)
                del times[:keep], self._rows[uid][:keep]

    def instant(self, column: Column) -> Mapping[str, float]:
        """Return the last scrape's value of each pod that answered it."""
        return {uid: float(self._rows[uid][-1][column]) for uid in self._present}

    def average(self, column: Column, now_s: float, window_s: float) -> Mapping[str, float]:
        """avg_over_time of a gauge per pod, of pods with a sample in the window."""
        return {
            uid: float(np.mean([row[column] for row in rows]))
            for uid, rows in self._within(now_s, window_s)
        }

    def largest(self, column: Column, now_s: float, window_s: float) -> Mapping[str, float]:
        """max_over_time of a gauge per pod, of pods with a sample in the window."""
        return {
            uid: max(float(row[column]) for row in rows)
            for uid, rows in self._within(now_s, window_s)
        }

    def rate(self, column: Column, now_s: float, window_s: float) -> Mapping[str, float]:
        """Increase per second of a pod's counter over the window, extrapolated as PromQL does.

        Pods with fewer than two samples in the window are absent.
        """
        return {
            uid: float(_rate(first[column], last[column], span, window_s))
            for uid, first, last, span in self._ends(now_s, window_s)
        }

    def quantile(self, ratio: float, now_s: float, window_s: float) -> float | None:
        """histogram_quantile over the sum of all pods' bucket rates; None without an answer.

        As in Prometheus only answers count: refused and lost requests have no latency.
        """
        total = np.zeros(len(BOUNDS_S))
        for _, first, last, span in self._ends(now_s, window_s):
            total += _bucket_rates(first[COLUMNS:], last[COLUMNS:], span, window_s)
        if total[-1] <= 0:
            return None
        found = percentile(BOUNDS_S, total, 0.0, ratio)
        return BOUNDS_S[-2] if found is not None and np.isinf(found) else found

    def _within(self, now_s: float, window_s: float) -> list[tuple[str, list[Row]]]:
        found = []
        for uid, times in self._times.items():
            start = bisect_left(times, now_s - window_s)
            if start < len(times):
                found.append((uid, self._rows[uid][start:]))
        return found

    def _ends(self, now_s: float, window_s: float) -> list[tuple[str, Row, Row, Span]]:
        """Return each pod's first and last sample in the window, and the time around them."""
        found = []
        for uid, times in self._times.items():
            if times[-1] <= now_s - window_s:
                continue
            start = bisect_left(times, now_s - window_s)
            if start < len(times) - 1:
                rows = self._rows[uid]
                span = Span.of(times, start, now_s - window_s, now_s)
                found.append((uid, rows[start], rows[-1], span))
        return found


class Span(NamedTuple):
    """The time between two samples, and PromQL's extrapolation of an increase beyond them.

    To the window's edge where that is nearer than 1.1 intervals, else by half an interval
    (prometheus/promql/functions.go, extrapolatedRate). A new pod therefore weighs little.
    """

    sampled_s: float
    before_s: float
    after_s: float

    @classmethod
    def of(cls, times_s: Sequence[float], start: int, begin_s: float, end_s: float) -> Span:
        """Return the span of the samples from `start` on, in the window from begin to end."""
        sampled_s = times_s[-1] - times_s[start]
        interval_s = sampled_s / (len(times_s) - 1 - start)
        gaps_s = (times_s[start] - begin_s, end_s - times_s[-1])
        before_s, after_s = (
            gap_s if gap_s < 1.1 * interval_s else interval_s / 2 for gap_s in gaps_s
        )
        return cls(sampled_s, before_s, after_s)


def _rate(first: float, last: float, span: Span, window_s: float) -> float:
    """Return the extrapolated increase per second, never extrapolated below a counter of zero."""
    increase = last - first
    if increase <= 0:
        return 0.0
    before_s = min(span.before_s, span.sampled_s * first / increase)
    return increase * (span.sampled_s + before_s + span.after_s) / span.sampled_s / window_s


def _bucket_rates(first: Row, last: Row, span: Span, window_s: float) -> Row:
    """Return cumulative rates up to each bound, as Prometheus has them; here per bucket."""
    starts = first.cumsum()
    increases = last.cumsum() - starts
    zero_s = span.sampled_s * starts / np.maximum(increases, 1e-9)
    covered_s = span.sampled_s + np.minimum(span.before_s, zero_s) + span.after_s
    rates: Row = increases * covered_s / (span.sampled_s * window_s)
    return rates
