"""Counts the requests of any recent window: differences of two points of each pod's counters. Pure.

A tick asks several times for the same windows: what each contains is computed once and kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from headroom.scaling.frozen import cached_property
from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.windows.counter_series import (
    ARRIVALS,
    LATENCY,
    MISSED,
    RETRIED,
    CounterSeries,
)
from headroom.scaling.windows.interpolation import EVERY, Place, arrivals_at, counters_at, place_of
from headroom.scaling.windows.window_totals import Flow, WindowTotal


@dataclass(frozen=True, kw_only=True, eq=False)
class WindowCounts:
    """The series of all pods, and where the present window of each ends."""

    bounds_s: tuple[float, ...] = ()
    """Upper bounds of the latency buckets of the series."""
    series: CounterSeries = field(default_factory=lambda: CounterSeries.empty(LATENCY))
    ends_s: Vector = field(default_factory=lambda: np.empty(0))
    """End of the present window of each pod, [pods]: now, or at the last scrape of a ready pod;
    never before the end of its series."""

    def total(self, window_s: float, *, ago_s: float = 0.0) -> WindowTotal:
        """Sum over all pods the requests of the `window_s` seconds that ended `ago_s` ago."""
        known = self._totals.get((window_s, ago_s))
        if known is None:
            known = self._totals[window_s, ago_s] = self._total(window_s, ago_s)
        return known

    def _total(self, window_s: float, ago_s: float) -> WindowTotal:
        if not self.series.columns:
            none = np.zeros(len(self.bounds_s))
            return WindowTotal(arrivals=0.0, missed=0.0, retried=0.0, latency=none)
        end = self.before(ago_s) if ago_s > 0 else self.series.newest
        total = (end - self.before(window_s, ago_s=ago_s)).sum(axis=0)
        return WindowTotal(
            arrivals=float(total[ARRIVALS]),
            missed=float(total[MISSED]),
            retried=float(total[RETRIED]),
            latency=total[LATENCY:],
        )

    def missed(self, window_s: float) -> float:
        """Return the requests of all pods that were missed in the last seconds."""
        if not np.count_nonzero(self.series.newest[:, MISSED]) or window_s <= 0.0:
            return 0.0
        return float(self._added_within(window_s, _INTAKE)[MISSED])

    def flow(self, window_s: float) -> Flow:
        """Return the requests of all pods in the last seconds: a part of `total`."""
        known = self._flows.get(window_s)
        if known is None:
            known = self._flows[window_s] = self._flow(window_s)
        return known

    def _flow(self, window_s: float) -> Flow:
        if not self.series.columns:
            return Flow(0.0, 0.0, 0.0)
        arrived, missed = self._added_within(window_s, _INTAKE).tolist()
        answered = float(self._added_within(window_s, _ANSWERED)[-1]) if self.bounds_s else 0.0
        return Flow(arrivals=arrived, missed=missed, ended=answered + missed)

    def _added_within(self, window_s: float, counters: slice) -> Vector:
        added: Vector = self.counted(window_s, counters).sum(axis=0)
        return added

    def arrivals(self, windows_s: Sequence[float]) -> list[float]:
        """Sum over all pods the requests that arrived in the last seconds, for each window."""
        return [float(self.arrived(window_s).sum()) for window_s in windows_s]

    def arrived(self, window_s: float) -> Vector:
        """Return the requests that each pod took in the last seconds, [pods]; not to be changed."""
        known = self._arrived.get(window_s)
        if known is None:
            before = arrivals_at(self.series, self._place(window_s))
            known = self._arrived[window_s] = self.series.arrivals[-1] - before
        return known

    def counted(self, window_s: float, counters: slice = EVERY) -> Vector:
        """Return the increases of these counters in the last seconds, [pods, counters]."""
        before = counters_at(self.series, self._place(window_s), counters)
        counted: Vector = self.series.newest[:, counters] - before
        return counted

    def counted_by(self, window_s: float, counter: int) -> Vector:
        """Return the increase of this counter in the last seconds, [pods]."""
        return self.counted(window_s, slice(counter, counter + 1))[:, 0]

    def before(self, window_s: float, *, ago_s: float = 0.0) -> Vector:
        """Return the counters at the beginning of such a window, [pods, counters]."""
        return counters_at(self.series, self._place(window_s, ago_s))

    def _place(self, window_s: float, ago_s: float = 0.0) -> Place:
        known = self._places.get((window_s, ago_s))
        if known is None:
            known = place_of(self.series, self.ends_s - ago_s - window_s)
            self._places[window_s, ago_s] = known
        return known

    @cached_property
    def _places(self) -> dict[tuple[float, float], Place]:
        return {}

    @cached_property
    def _totals(self) -> dict[tuple[float, float], WindowTotal]:
        return {}

    @cached_property
    def _arrived(self) -> dict[float, Vector]:
        return {}

    @cached_property
    def _flows(self) -> dict[float, Flow]:
        return {}

    def columns_of(self, replicas: Iterable[str]) -> list[int]:
        """Return the columns of those of these replicas that have one, in the same order."""
        columns = map(self.series.columns.get, replicas)
        return [column for column in columns if column is not None]

    def ended(self, window_s: float) -> Vector:
        """Return how many requests of each pod ended in the window, answered or missed, [pods]."""
        if not self.bounds_s:
            return np.zeros(len(self.series.columns))
        return self.counted(window_s, _ANSWERED)[:, -1] + self.counted_by(window_s, MISSED)


_INTAKE, _ANSWERED = slice(0, MISSED + 1), slice(-2, None)
"""Columns: arrivals and misses; the last bounds. Of two each: one alone is summed in another order,
which rounds differently."""
