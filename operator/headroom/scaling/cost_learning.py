"""The batch cost, learnt online: an affine fit over (mean batch size, mean batch seconds) pairs.

A server may claim a cost that it measured when it warmed up: PRIOR_BATCHES batches of one and as
many full ones count as such a prior, so the fit is defined from the first tick and cannot tilt
while traffic shows only one batch size. Where none is claimed a faint doubt takes its place: full
batches might gain nothing over what was seen. Observed batches are forgotten with a half-life.

How much an execution varies (cv) follows from the residuals: n batches of standard deviation s have
a mean of deviation s / sqrt(n), so that n times the squared residual estimates s squared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields

from headroom.scaling.values import CostModel, PodSample

PRIOR_BATCHES = 20.0
DOUBT_BATCHES = 0.1
HALF_LIFE_S = 300.0
LARGEST_WEIGHT = 2000.0
"""Batches remembered at most, so that a fast server's model still follows a change in minutes."""
OUTLIER_FACTOR = 20.0
"""An interval this many times slower than the fit is a hang, not a cost: a lognormal execution of
cv 1 exceeds 20 times its mean once in 20 000."""
FEWEST_INTERVALS = 10.0
"""Before as many intervals nothing is said about variation."""
_NEGLIGIBLE_CV = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What the servers say of themselves."""

    max_batch: int
    slots: int = 1
    cost: CostModel | None = None


def claim_of(samples: Iterable[PodSample]) -> Claim | None:
    """Return the largest batch and the slowest cost that any server claims; None if none does."""
    costs, batches, slots = [], [], 1
    for sample in samples:
        if sample.cost is not None:
            costs.append(sample.cost)
            batches.append(sample.cost.max_batch)
        elif sample.max_batch is not None:
            batches.append(sample.max_batch)
        slots = max(slots, sample.slots)
    if not batches:
        return None
    cost = max(costs, key=lambda one: one.batch_s(one.max_batch), default=None)
    return Claim(max_batch=max(batches), slots=slots, cost=cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLearner:
    """Weighted sums of a least-squares line through (size, seconds)."""

    weight: float = 0.0
    sizes: float = 0.0
    sizes_squared: float = 0.0
    seconds: float = 0.0
    seconds_squared: float = 0.0
    products: float = 0.0
    intervals: float = 0.0

    def observe(
        self,
        pairs: Iterable[tuple[float, float, float]],
        elapsed_s: float,
        expected: CostModel | None = None,
    ) -> CostLearner:
        """Return the sums with (batches, mean size, mean seconds) pairs added, older ones faded.

        What takes OUTLIER_FACTOR times as long as `expected` is left out.
        """
        fade = 0.5 ** (max(0.0, elapsed_s) / HALF_LIFE_S)
        if self.weight * fade > LARGEST_WEIGHT:
            fade = LARGEST_WEIGHT / self.weight
        kept = [
            (batches, size, mean_s)
            for batches, size, mean_s in pairs
            if expected is None or mean_s <= OUTLIER_FACTOR * expected.batch_s(size)
        ]
        return self._plus(kept, fade)

    def fit(self, claim: Claim | None) -> CostModel | None:
        """Return the fitted cost; None while the server has not said how large a batch may be.

        None too while neither a claim nor a batch is known. A fit with a negative part is replaced
        by the nearest line without one: through the origin, or flat.
        """
        if claim is None or (claim.cost is None and self.weight <= 0):
            return None
        if claim.cost is not None:
            full = float(claim.max_batch)
            one = (PRIOR_BATCHES, 1.0, claim.cost.batch_s(1))
            sums = self._plus([one, (PRIOR_BATCHES, full, claim.cost.batch_s(full))])
        else:
            full_s = claim.max_batch * self.seconds / self.sizes
            sums = self._plus([(DOUBT_BATCHES, float(claim.max_batch), full_s)])
        fixed_s, per_item_s = sums._line()
        return CostModel(
            fixed_s=fixed_s,
            per_item_s=per_item_s,
            max_batch=claim.max_batch,
            slots=claim.slots,
            cv=self._cv(),
        )

    def _plus(self, pairs: Iterable[tuple[float, float, float]], fade: float = 1.0) -> CostLearner:
        weight, sizes, sizes_squared, seconds, seconds_squared, products, intervals = (
            fade * getattr(self, one.name) for one in fields(self)
        )
        for batches, size, mean_s in pairs:
            weight += batches
            sizes += batches * size
            sizes_squared += batches * size * size
            seconds += batches * mean_s
            seconds_squared += batches * mean_s * mean_s
            products += batches * size * mean_s
            intervals += 1.0
        return CostLearner(
            weight=weight,
            sizes=sizes,
            sizes_squared=sizes_squared,
            seconds=seconds,
            seconds_squared=seconds_squared,
            products=products,
            intervals=intervals,
        )

    def _line(self) -> tuple[float, float]:
        """Return fixed and per-item seconds of the least-squares line without a negative part."""
        spread = self.sizes_squared * self.weight - self.sizes**2
        if spread <= 1e-9 * self.weight**2:  # one size only: of one request each
            return self.seconds / self.weight, 0.0
        per_item_s = (self.products * self.weight - self.sizes * self.seconds) / spread
        fixed_s = (self.seconds - per_item_s * self.sizes) / self.weight
        if fixed_s < 0:
            return 0.0, self.products / self.sizes_squared
        if per_item_s < 0:
            return self.seconds / self.weight, 0.0
        return fixed_s, per_item_s

    def _cv(self) -> float:
        """Return the coefficient of variation of one execution around the line."""
        if self.intervals < FEWEST_INTERVALS:
            return 0.0
        fixed_s, per_item_s = self._line()
        squares = (
            self.seconds_squared
            - 2 * (fixed_s * self.seconds + per_item_s * self.products)
            + fixed_s**2 * self.weight
            + 2 * fixed_s * per_item_s * self.sizes
            + per_item_s**2 * self.sizes_squared
        )
        variance = max(0.0, squares) / (self.intervals - 2)
        cv = math.sqrt(variance) * self.weight / self.seconds
        return cv if cv > _NEGLIGIBLE_CV else 0.0
