"""The cost of a batch of one length: t(b) = fixed + per_item * b seconds, learned online. Pure.

Warm-up times every batch size, which determines the shape. Later batches are weighted by age (each
counts `FORGET` times the next one). Traffic may show only one batch size, which says nothing about
the shape: so the warm-up times stay in the fit, scaled to the level of recent batches. If all
batches of one item take twice as long, both coefficients double.

A change of speed is detected by Page's cumulative sum of the residuals' logarithms; then only the
batches since its beginning are kept. At twice the time, a batch adds ln 2 - 0.05 = 0.64: the third
one exceeds 1.5.
"""

from __future__ import annotations

import math
from typing import NamedTuple

FORGET = 0.99
"""Weight of a batch relative to the next one: the last 100 batches hold 63 % of the weight."""
CLIP = math.log(2.0)
"""One batch counts as at most twice as slow or as fast: an outlier is no change."""
SLACK = 0.05
"""Residuals below this are no evidence of a change."""
ALARM = 1.5
PRIOR = 8.0
"""Weight of the warm-up times, in batches, in the level of recent ones."""


class FitSums(NamedTuple):
    """Sufficient statistics of a weighted straight-line fit."""

    n: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0

    def add(self, x: float, y: float, keep: float = 1.0) -> FitSums:
        """Add a batch of x items that took y seconds; earlier ones weigh `keep` times as much."""
        return FitSums(
            keep * self.n + 1.0,
            keep * self.x + x,
            keep * self.y + y,
            keep * self.xx + x * x,
            keep * self.xy + x * y,
        )

    def plus(self, other: FitSums, level: float) -> FitSums:
        """Add the points of another fit, with y multiplied by `level`."""
        return FitSums(
            self.n + other.n,
            self.x + other.x,
            self.y + level * other.y,
            self.xx + other.xx,
            self.xy + level * other.xy,
        )

    def scaled(self, level: float) -> FitSums:
        """Multiply all y by `level`."""
        return FitSums(self.n, self.x, level * self.y, self.xx, level * self.xy)

    def line(self) -> tuple[float, float]:
        """Return intercept and slope, both at least 0; a single x gives intercept 0."""
        spread = self.n * self.xx - self.x * self.x
        if spread <= 1e-9 * self.n * self.xx:
            return 0.0, self.xy / self.xx
        slope = (self.n * self.xy - self.x * self.y) / spread
        intercept = (self.y - slope * self.x) / self.n
        if slope < 0.0:
            return self.y / self.n, 0.0
        if intercept < 0.0:
            return 0.0, self.xy / self.xx
        return intercept, slope


class ChangeEvidence(NamedTuple):
    """Evidence that batches became slower (or faster), and those batches."""

    evidence: float = 0.0
    since: FitSums = FitSums()

    def add(self, evidence: float, items: int, seconds: float) -> ChangeEvidence:
        """Add a batch; evidence that drops to 0 starts over."""
        total = self.evidence + evidence
        return ChangeEvidence(total, self.since.add(items, seconds)) if total > 0.0 else NO_EVIDENCE


NO_EVIDENCE = ChangeEvidence()


class BatchCostFit(NamedTuple):
    """The fitted line; `observe` returns the next one."""

    fixed_s: float
    per_item_s: float
    warm: FitSums
    """The warm-up times, scaled by the changes since."""
    shape: tuple[float, float]
    """The line of the warm-up times alone."""
    recent: FitSums = FitSums()
    slower: ChangeEvidence = NO_EVIDENCE
    faster: ChangeEvidence = NO_EVIDENCE
    settled: tuple[float, float] | None = None
    """The line before the first evidence of the next change; None: the current one."""
    changed: float = 1.0
    """Factor by which the last batch proved the device slower; 1 if it proved nothing."""

    def batch_s(self, items: int) -> float:
        """Return the seconds that a batch of this many items takes."""
        return self.fixed_s + self.per_item_s * items

    def observe(self, items: int, seconds: float, tail: float) -> BatchCostFit:
        """Add one batch; relative residuals up to `tail` are normal."""
        usual_s, slower, faster = self.fixed_s + self.per_item_s * items, NO_EVIDENCE, NO_EVIDENCE
        change = math.log(seconds / self._settled_s(1.0, items))
        change, slack = min(CLIP, max(-CLIP, change)), max(SLACK, tail / 2)
        # most batches are as expected: adding nothing to nothing is skipped
        if change > slack or self.slower is not NO_EVIDENCE:
            slower = self.slower.add(change - slack, items, seconds)
            if slower.evidence > ALARM:
                return self._changed(slower.since)
        if change < -slack or self.faster is not NO_EVIDENCE:
            faster = self.faster.add(-change - slack, items, seconds)
            if faster.evidence > ALARM:
                return self._changed(faster.since)
        counted_s = min(2.0 * usual_s, max(usual_s / 2.0, seconds))
        return self._followed(self.recent.add(items, counted_s, FORGET), slower, faster)

    def scaled(self, level: float) -> BatchCostFit:
        """Return the fit for a device slower by this factor."""
        return BatchCostFit(
            level * self.fixed_s,
            level * self.per_item_s,
            self.warm.scaled(level),
            (level * self.shape[0], level * self.shape[1]),
            self.recent.scaled(level),
        )

    def _followed(
        self, recent: FitSums, slower: ChangeEvidence, faster: ChangeEvidence
    ) -> BatchCostFit:
        warm, shape = self.warm, self.shape
        prior_s = PRIOR * warm.y / warm.n
        level = (prior_s + recent.y) / (prior_s + shape[0] * recent.n + shape[1] * recent.x)
        line = recent.plus(warm, level).line()
        steady = slower is NO_EVIDENCE and faster is NO_EVIDENCE
        before = None if steady else self.settled or (self.fixed_s, self.per_item_s)
        return BatchCostFit(*line, warm, shape, recent, slower, faster, before)

    def _changed(self, since: FitSums) -> BatchCostFit:
        fixed_s, per_item_s = self.shape
        level = since.y / (fixed_s * since.n + per_item_s * since.x)
        there = BatchCostFit(fixed_s, per_item_s, self.warm, self.shape).scaled(level)
        changed = since.y / self._settled_s(since.n, since.x)
        return there._followed(since, NO_EVIDENCE, NO_EVIDENCE)._replace(changed=changed)

    def _settled_s(self, batches: float, items: float) -> float:
        fixed_s, per_item_s = self.settled or (self.fixed_s, self.per_item_s)
        return fixed_s * batches + per_item_s * items


def warm_fit(warm: FitSums) -> BatchCostFit:
    """Fit the warm-up times alone."""
    shape = warm.line()
    return BatchCostFit(*shape, warm, shape)
