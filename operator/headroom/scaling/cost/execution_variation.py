"""Learns how much one execution varies, from the differences between intervals of the same replica.

The mean over n executions of variation v has a variation of v / sqrt(n), so two successive means of
one replica, over n and m executions, differ by v^2 (1/n + 1/m) in the square (von Neumann 1941, the
mean square successive difference). What lasts longer than an interval is in both means and cancels
out: a slower replica, a size that no line fits, a cost that drifts. With residuals around one line
it would not: a replica that is always 20 % slower, at 60 executions an interval, would count as 60
x 0.2^2 = 2.4, and look like a variation of 1.5.

What sizes explain is taken out as well (`interval_pairs`).

A replica that becomes slower, or whose counters jump, differs from itself once, by as much. So the
replica with the largest squares is left out where its mean is `CONTRADICTED` times that of all
others together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from headroom.scaling.cost.interval_pairs import NO_PAIRS, Pairs, pair, plus, residual, slope
from headroom.scaling.frozen import cached_property, replace
from headroom.scaling.values.observation import CostModel
from headroom.scaling.windows.window_totals import BatchStats

FIRST_INTERVALS = 10
FEWEST_DIFFERENCES = 10.0
"""With fewer differences the variation is unknown."""
_NEGLIGIBLE_CV = 0.02
_ALMOST = 1.0 - 1e-9
CONTRADICTED, FEWEST_OF_OTHERS = 9.0, 5.0
"""Chance makes the mean square of ten differences so many times that of ten others in one of a
thousand services; the others must have as many differences to say so."""


@dataclass(frozen=True, kw_only=True)
class ExecutionVariation:
    """The mean square successive difference, fading."""

    every: Pairs = NO_PAIRS
    """The sums of all replicas."""
    intervals: int = 0
    """Observed so far; the first ones are not compared: the expected cost is still a guess."""
    latest: Mapping[str, BatchStats] = field(default_factory=dict)
    """The last interval of each replica."""
    own: Mapping[str, Pairs] = field(default_factory=dict)
    """The sums of each replica, parts of the above."""
    largest: str = ""
    """The replica with the largest squares; empty while all are 0."""

    @classmethod
    def of(cls, squares: float, differences: float) -> ExecutionVariation:
        """Return the variation learned before, from its squares and number of differences."""
        return cls(every=(squares, differences, 0.0, 0.0))

    @property
    def squares(self) -> float:
        """The sum of squares that sizes do not explain."""
        return residual(self.every, slope(self.every))

    @property
    def differences(self) -> float:
        """Number of observed differences."""
        return self.every[1]

    def observe(
        self,
        intervals: Sequence[BatchStats],
        expected: CostModel,
        fade: float,
        factors: Mapping[str, float],
    ) -> ExecutionVariation:
        """Return it with intervals added, at most one per replica; earlier sums fade by `fade`.

        `expected` is the cost of the usual replica, which only weights the pairs; `factors` are the
        speeds of the others.
        """
        every = plus(self.every, NO_PAIRS, fade)
        each_s = slope(every)
        fixed_s, per_item_s = expected.fixed_s, expected.per_item_s
        settled, latest = self.intervals >= FIRST_INTERVALS, dict(self.latest)
        own, largest = dict(self.own), self.largest
        most = residual(own.get(largest, NO_PAIRS), each_s)
        for now in intervals:
            replica, batches, size, mean_s = now
            before = latest.get(replica)
            latest[replica] = now
            if before is None or not settled:
                continue
            _, fewer, other, other_s = before
            usual_s, other_usual_s = fixed_s + per_item_s * size, fixed_s + per_item_s * other
            seconds, requests = mean_s - other_s, size - other
            if factors and replica in factors:
                seconds /= factors[replica]
            variance = usual_s * usual_s / batches + other_usual_s * other_usual_s / fewer
            added = pair(seconds, requests, variance)
            every = plus(every, added)
            own[replica] = kept = plus(own.get(replica, NO_PAIRS), added, fade)
            square = residual(kept, each_s)
            if square > most:
                largest, most = replica, square
        return ExecutionVariation(
            every=every,
            intervals=self.intervals + len(intervals),
            latest=latest,
            own=own,
            largest=largest,
        )

    def only(self, replicas: AbstractSet[str]) -> ExecutionVariation:
        """Return it without the intervals of other replicas.

        What was learned from them is kept, unless the others contradict it.
        """
        if self.latest.keys() <= replicas and self.own.keys() <= replicas:
            return self
        every = self.every
        if self.largest and self.largest not in replicas and self._contradicted:
            every = (*self.uncontradicted, 0.0, 0.0)
        return replace(
            self,
            every=every,
            latest={one: interval for one, interval in self.latest.items() if one in replicas},
            own={one: sums for one, sums in self.own.items() if one in replicas},
            largest=self.largest if self.largest in replicas else "",
        )

    def interrupted(self, replicas: AbstractSet[str]) -> ExecutionVariation:
        """Return it without the last intervals of these: their next ones are no successors."""
        if self.latest.keys().isdisjoint(replicas):
            return self
        latest = {one: interval for one, interval in self.latest.items() if one not in replicas}
        return replace(self, latest=latest)

    def fewer(self, kept: float) -> ExecutionVariation:
        """Return the same variation with the weight of its evidence reduced."""
        squares, differences = self.uncontradicted
        return ExecutionVariation.of(kept * squares, kept * differences)

    def still_known(self) -> ExecutionVariation:
        """Return the same variation with the least evidence with which it is known."""
        return self.fewer(min(1.0, FEWEST_DIFFERENCES / self.uncontradicted[1]))

    @property
    def uncontradicted(self) -> tuple[float, float]:
        """Squares and differences without those of a replica that the others contradict."""
        if not self._contradicted:
            return self.squares, self.differences
        left = self._others
        return residual(left, slope(self.every)), left[1]

    @property
    def _others(self) -> Pairs:
        """The sums of all replicas but the one with the largest squares."""
        squares, differences, products, sizes = self.every
        more, count, further, larger = self.own[self.largest]
        return squares - more, differences - count, products - further, sizes - larger

    @property
    def _contradicted(self) -> bool:
        """Whether the others contradict the replica with the largest squares."""
        if not self.largest or len(self.own) < 2:
            return False
        others, one, each_s = self._others, self.own[self.largest], slope(self.every)
        if others[1] < FEWEST_OF_OTHERS:
            return False
        return residual(one, each_s) * others[1] > CONTRADICTED * residual(others, each_s) * one[1]

    @property
    def known(self) -> bool:
        """Whether there is enough evidence."""
        return self.differences >= _ALMOST * FEWEST_DIFFERENCES

    @cached_property
    def cv(self) -> float:
        """The coefficient of variation of one execution; 0 while unknown."""
        if not self.known:
            return 0.0
        squares, differences = self.uncontradicted
        cv = math.sqrt(squares / differences)
        return cv if cv > _NEGLIGIBLE_CV else 0.0
