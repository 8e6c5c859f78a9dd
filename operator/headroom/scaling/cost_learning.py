"""The batch cost, learnt online: an affine fit over (mean batch size, mean batch seconds) pairs.

What the server measured when it warmed up counts as a prior of PRIOR_BATCHES batches of one and as
many full ones, so the fit is defined from the first tick and cannot tilt while traffic shows only
one batch size. Observed batches are forgotten with a half-life.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headroom.scaling.values import CostModel

PRIOR_BATCHES = 20.0
HALF_LIFE_S = 300.0
LARGEST_WEIGHT = 2000.0
"""Batches remembered at most, so that a fast server's model still follows a change in minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLearner:
    """Weighted sums of a least-squares line through (size, seconds)."""

    weight: float = 0.0
    sizes: float = 0.0
    sizes_squared: float = 0.0
    seconds: float = 0.0
    products: float = 0.0

    def observe(self, pairs: Iterable[tuple[float, float, float]], elapsed_s: float) -> CostLearner:
        """Return the sums with (batches, mean size, mean seconds) pairs added, older ones faded."""
        fade = 0.5 ** (max(0.0, elapsed_s) / HALF_LIFE_S)
        if self.weight * fade > LARGEST_WEIGHT:
            fade = LARGEST_WEIGHT / self.weight
        weight, sizes, squared, seconds, products = (
            fade * total
            for total in (
                self.weight,
                self.sizes,
                self.sizes_squared,
                self.seconds,
                self.products,
            )
        )
        for batches, size, mean_s in pairs:
            weight += batches
            sizes += batches * size
            squared += batches * size * size
            seconds += batches * mean_s
            products += batches * size * mean_s
        return CostLearner(
            weight=weight, sizes=sizes, sizes_squared=squared, seconds=seconds, products=products
        )

    def fit(self, advertised: CostModel | None) -> CostModel | None:
        """Return the fitted cost; None while the server has not said how large a batch may be.

        A fit with a negative part is replaced by the nearest line without one: through the origin,
        or flat.
        """
        if advertised is None:
            return None
        sums = self.observe(
            [
                (PRIOR_BATCHES, 1.0, advertised.batch_s(1)),
                (
                    PRIOR_BATCHES,
                    float(advertised.max_batch),
                    advertised.batch_s(advertised.max_batch),
                ),
            ],
            0.0,
        )
        spread = sums.sizes_squared * sums.weight - sums.sizes**2
        if spread <= 1e-9 * sums.weight**2:  # only batches of one
            return CostModel(fixed_s=sums.seconds / sums.weight, per_item_s=0.0, max_batch=1)
        per_item_s = (sums.products * sums.weight - sums.sizes * sums.seconds) / spread
        fixed_s = (sums.seconds - per_item_s * sums.sizes) / sums.weight
        if fixed_s < 0:
            fixed_s, per_item_s = 0.0, sums.products / sums.sizes_squared
        if per_item_s < 0:
            fixed_s, per_item_s = sums.seconds / sums.weight, 0.0
        return CostModel(fixed_s=fixed_s, per_item_s=per_item_s, max_batch=advertised.max_batch)
