"""PURE. What a batch of one length costs: t(b) = fixed + per_item * b seconds, learnt and followed.

Warm-up times every batch size, which fixes the shape. Later batches are weighed by age (each counts
`FORGET` times the next one). Traffic may show one batch size only, which says nothing about the
shape: therefore the warm-up times stay in the fit, scaled to the level of the recent batches. When
all batches of one item take twice as long, both coefficients double.

A change of speed is not waited for: Page's cumulative sum of the residuals' logarithms tells it
from noise, and the memory is cut back to the batches since it began. At twice the time, a batch
adds ln 2 - 0.05 = 0.64: the third one passes 1.5.
"""

from __future__ import annotations

import math
from typing import NamedTuple

FORGET = 0.99
"""Weight of a batch relative to its successor: the last 100 batches hold 63 % of the weight."""
CLIP = math.log(2.0)
"""One batch counts as at most twice as slow or as fast: a hiccup is no change."""
SLACK = 0.05
"""Residuals below this are no evidence of a change."""
ALARM = 1.5
PRIOR = 8.0
"""For how many batches the warm-up stands when the level of recent ones is taken."""


class FitSums(NamedTuple):
    """Sufficient statistics of a weighted straight-line fit."""

    n: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0

    def add(self, x: float, y: float, keep: float = 1.0) -> FitSums:
        """One more point, after the weight of all earlier ones is multiplied by `keep`."""
        return FitSums(
            keep * self.n + 1.0,
            keep * self.x + x,
            keep * self.y + y,
            keep * self.xx + x * x,
            keep * self.xy + x * y,
        )

    def plus(self, other: FitSums, level: float) -> FitSums:
        """With the points of another fit, their y multiplied by `level`."""
        return FitSums(
            self.n + other.n,
            self.x + other.x,
            self.y + level * other.y,
            self.xx + other.xx,
            self.xy + level * other.xy,
        )

    def scaled(self, level: float) -> FitSums:
        """All y multiplied by `level`."""
        return FitSums(self.n, self.x, level * self.y, self.xx, level * self.xy)

    def line(self) -> tuple[float, float]:
        """Intercept and slope, neither below zero. A single x gives a slope through the origin."""
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
    """Evidence that batches have changed to one side, and those batches."""

    evidence: float = 0.0
    since: FitSums = FitSums()

    def add(self, evidence: float, items: int, seconds: float) -> ChangeEvidence:
        """One more batch; evidence below nothing begins anew."""
        total = self.evidence + evidence
        return ChangeEvidence(total, self.since.add(items, seconds)) if total > 0.0 else NO_EVIDENCE


NO_EVIDENCE = ChangeEvidence()


class BatchCostFit(NamedTuple):
    """The line as a value; `observe` returns the next one."""

    fixed_s: float
    per_item_s: float
    warm: FitSums
    """The warm-up times, at the level to which the last change brought them."""
    shape: tuple[float, float]
    """The line of the warm-up times alone."""
    recent: FitSums = FitSums()
    slower: ChangeEvidence = NO_EVIDENCE
    faster: ChangeEvidence = NO_EVIDENCE
    settled: tuple[float, float] | None = None
    """The line before there was any evidence of the next change; None: this one."""
    changed: float = 1.0
    """By what the last batch proved the device to have become slower; 1 where it proved nothing."""

    def batch_s(self, items: int) -> float:
        """Seconds that a batch of so many items takes."""
        return self.fixed_s + self.per_item_s * items

    def observe(self, items: int, seconds: float, tail: float) -> BatchCostFit:
        """Follow one batch; relative residuals up to `tail` are usual."""
        usual_s, slower, faster = self.fixed_s + self.per_item_s * items, NO_EVIDENCE, NO_EVIDENCE
        change = math.log(seconds / self._settled_s(1.0, items))
        change, slack = min(CLIP, max(-CLIP, change)), max(SLACK, tail / 2)
        # most batches are as usual: nothing is added where there is nothing to add to
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
        """As if the device were so many times slower."""
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
    """The fit of the warm-up times alone."""
    shape = warm.line()
    return BatchCostFit(*shape, warm, shape)
