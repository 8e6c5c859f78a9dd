"""Measures the promises on tokens: percentiles of the last minute, and how many requests break one.

Three times of each request are counted, each in a histogram of its own. Which requests break two
promises at once is not known, so the share that breaks any is at most the sum of the shares.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from headroom.scaling.frozen import replace
from headroom.scaling.generation.counters.spread import Spread, with_bound
from headroom.scaling.generation.counters.token_increase import Increase
from headroom.scaling.generation.counters.token_table import Count, Grid
from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.promise.error_budget import Outcomes
from headroom.scaling.values.tokens import Binding, Target, TokenTargets
from headroom.scaling.windows.histogram import attainment, percentile

WINDOW_S = 60.0
Spreads = Mapping[Binding, Spread]
NO_SPREADS: Spreads = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One promise in the window."""

    target: Target
    value_s: float | None
    late_share: float | None
    requests: float

    @property
    def ratio(self) -> float | None:
        """Measured percentile over target."""
        return None if self.value_s is None else self.value_s / self.target.seconds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PromiseWindow:
    """Counts that all pods added in each tick of the last minute, oldest first."""

    ticks: tuple[tuple[float, Vector, float], ...] = ()
    """(time, counters, answers that were given up and that count as missed)."""
    total: Vector = field(default_factory=lambda: np.zeros(0))
    """The sum of the counters over all ticks."""
    grid: Grid = field(default_factory=Grid)

    def observe(self, increase: Increase, grid: Grid, now_s: float) -> PromiseWindow:
        """Return the window up to this tick; counts on another grid begin a new one."""
        window = self._aged(now_s)
        if not increase.pods:
            return window
        _, _, first, token = grid.slices()
        added = increase.total[first.start : token.stop]
        tick = (now_s, added, float(increase.total[Count.GIVEN_UP]))
        if grid != window.grid or not window.ticks:
            return PromiseWindow(ticks=(tick,), total=added, grid=grid)
        return replace(window, ticks=(*window.ticks, tick), total=window.total + added)

    def _aged(self, now_s: float) -> PromiseWindow:
        """Return the window without older ticks."""
        gone, total = 0, self.total
        for time_s, added, _ in self.ticks:
            if now_s - time_s < WINDOW_S:
                break
            gone, total = gone + 1, total - added  # counts: exact
        return replace(self, ticks=self.ticks[gone:], total=total) if gone else self

    def given_up(self, since_s: float = -math.inf) -> float:
        """Return the missed requests that the histograms judge by their tokens until then."""
        return sum(given_up for time_s, _, given_up in self.ticks if time_s >= since_s)

    def measure(
        self, targets: TokenTargets, missed: float = 0.0, expected: Spreads = NO_SPREADS
    ) -> dict[Binding, Measured]:
        """Return the promises on tokens that a histogram shows; `missed` requests broke all.

        `expected` are the times that the model expects of each.
        """
        if not self.ticks:
            return {}
        return self._measured(targets, self.total, missed, expected)

    def counts(self) -> dict[Binding, Vector]:
        """Return the histograms of the window, cumulative per bound."""
        if not self.ticks:
            return {}
        total = self.total
        cut = len(self.grid.first_token)
        return {
            Binding.TIME_TO_FIRST_TOKEN: total[:cut],
            Binding.TIME_PER_OUTPUT_TOKEN: total[cut:],
        }

    def latest(
        self, targets: TokenTargets, now_s: float, expected: Spreads = NO_SPREADS
    ) -> dict[Binding, Measured]:
        """Return the promises over the requests that ended since the last tick."""
        if not self.ticks or self.ticks[-1][0] < now_s:
            return {}
        return self._measured(targets, self.ticks[-1][1], 0.0, expected)

    def _measured(
        self, targets: TokenTargets, counts: Vector, missed: float, expected: Spreads
    ) -> dict[Binding, Measured]:
        cut, grid, output = len(self.grid.first_token), self.grid, targets.output_token
        if output is not None and not (grid.output_token and _has_times(counts, cut)):
            output = None
        promised = (
            (Binding.TIME_TO_FIRST_TOKEN, targets.first_token, grid.first_token, slice(cut)),
            (Binding.TIME_PER_OUTPUT_TOKEN, output, grid.output_token, slice(cut, None)),
        )
        found: dict[Binding, Measured] = {}
        for binding, target, bounds_s, columns in promised:
            if target is None or not bounds_s:
                continue
            share, spread = None, expected.get(binding)
            if spread is not None:
                share = spread.share_within(bounds_s, self.total[columns], target.seconds)
            split = with_bound(bounds_s, counts[columns], target.seconds, share)
            found[binding] = measured_of(target, *split, missed)
        return found


def _has_times(counts: Vector, cut: int) -> bool:
    """Return whether any answer has a second token; else failures say nothing of its time.

    True also where nothing was answered. `counts` are those of the first tokens up to `cut`, then
    those of the times per output token.
    """
    return bool(counts[-1] > 0.0) or not (cut and counts[cut - 1] > 0.0)


def measured_of(
    target: Target, bounds_s: tuple[float, ...], counts: Vector, missed: float
) -> Measured:
    """Return one promise by its cumulative `counts` [bounds] and the requests that missed."""
    share = attainment(bounds_s, counts, missed, target.seconds)
    return Measured(
        target=target,
        value_s=percentile(bounds_s, counts, missed, target.percentile),
        late_share=None if share is None else min(1.0, max(0.0, 1.0 - share)),
        requests=float(counts[-1]) + missed,
    )


def strictest(targets: TokenTargets) -> float:
    """Return the highest promised percentile: 1 minus it is the unit that misses are counted in.

    Worked: a p99 allows 1 % late, so an hour's error budget lasts 36 s, not the 180 s of a p95.
    """
    promised = (targets.first_token, targets.output_token, targets.latency)
    return max(one.percentile for one in promised if one is not None)


def attainment_of(measured: Mapping[Binding, Measured]) -> float | None:
    """Return the share of requests that keep all promises, at least; None without requests."""
    shares = [one.late_share for one in measured.values() if one.late_share is not None]
    return 1.0 - min(1.0, sum(shares)) if shares else None


def worst_ratio(measured: Mapping[Binding, Measured]) -> float | None:
    """Return the largest measured percentile over its target; None without requests."""
    ratios = [one.ratio for one in measured.values() if one.ratio is not None]
    return max(ratios, default=None)


def outcomes_of(measured: Mapping[Binding, Measured], allowed: float) -> Outcomes:
    """Return the ended requests, with the misses of the promise that uses most of its allowance.

    Promises of other percentiles than the policy's count in shares of their own allowance.
    Worked: 2 % of requests miss a p99 where the policy allows 5 %: as if 10 % had missed.
    """
    ended = max((one.requests for one in measured.values()), default=0.0)
    spent = [
        one.late_share / (1.0 - one.target.percentile)
        for one in measured.values()
        if one.late_share is not None
    ]
    return Outcomes(ended=ended, late=min(ended, max(spent, default=0.0) * allowed * ended))


def nearest_s(bounds_s: tuple[float, ...], counts: Vector, ratio: float, value_s: float) -> float:
    """Return the time nearest to `value_s` that this percentile can have: its bucket says no more.

    Worked: 30 ms expected, the 95th percentile between 25 and 50 ms: 30 ms; with 60 ms: 50 ms.
    """
    total = float(counts[-1])
    index = int(np.searchsorted(counts, ratio * total))
    upper = bounds_s[min(index, len(bounds_s) - 1)]
    lower = bounds_s[index - 1] if index else 0.0
    return min(max(value_s, lower), upper if math.isfinite(upper) else math.inf)
