"""PURE. What a batch costs, per padded length: seeded by warm-up, followed batch by batch.

A model without a dynamic dimension has the one length 0. When one length is seen to have changed
its speed, the others are taken to have changed with it (a device that is throttled is slow at
everything) until their own batches say otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headroom_server.scheduling.batch_cost_fit import FORGET, BatchCostFit, FitSums, warm_fit

LARGEST_RESIDUAL = 1.0


WEIGHT = 0.05
"""Of the latest sample: a change is followed within some 40 samples, up as fast as down."""


class EwmaSpread(NamedTuple):
    """The estimate as a value; `follow` returns the next one."""

    mean: float = 0.0
    deviation: float = 0.0

    @property
    def high(self) -> float:
        """About the 95th percentile: where they are normal, mean + 1.6 sigma. Never negative."""
        return max(0.0, self.mean + 2.0 * self.deviation)

    def follow(self, sample: float) -> EwmaSpread:
        """One more sample."""
        off = sample - self.mean
        return EwmaSpread(
            self.mean + WEIGHT * off, self.deviation + WEIGHT * (abs(off) - self.deviation)
        )


class Timing(NamedTuple):
    """One executed batch: its padded size, what it took, its padded length."""

    items: int
    seconds: float
    length: int = 0


class CostModel(NamedTuple):
    """The fits as a value; `observe` returns the next one."""

    fits: Mapping[int, BatchCostFit]
    shares: Mapping[int, float]
    """How many items of each length came lately, older ones weighing less."""
    residuals: EwmaSpread
    """Of the times over the fitted ones, less 1."""

    @classmethod
    def from_warm_up(
        cls, timings: Iterable[tuple[int, float] | tuple[int, float, int]]
    ) -> CostModel:
        """BatchCostFit (items, seconds) or (items, seconds, length) of warm batches.

        Raises:
            ValueError: without any, or with one that is not positive.
        """
        warm: dict[int, FitSums] = {}
        known = [Timing(*timing) for timing in timings]
        for timing in known:
            _check(timing.items, timing.seconds)
            warm[timing.length] = warm.get(timing.length, FitSums()).add(
                timing.items, timing.seconds
            )
        if not warm:
            raise ValueError("a cost model needs at least one timed batch; got none")
        fits = {length: warm_fit(sums) for length, sums in sorted(warm.items())}
        residuals = EwmaSpread()
        for timing in known:
            usual_s = fits[timing.length].batch_s(timing.items)
            residuals = residuals.follow(min(LARGEST_RESIDUAL, timing.seconds / usual_s - 1.0))
        return cls(fits, dict.fromkeys(fits, 1.0), residuals)

    @property
    def tail(self) -> float:
        """About the 95th percentile: 0.1 is a batch a tenth slower than fitted."""
        return self.residuals.high

    def observe(self, items: int, seconds: float, length: int = 0) -> CostModel:
        """Follow one executed batch."""
        _check(items, seconds)
        before = self.fit(length)
        after = before.observe(items, seconds, self.tail)
        residual = min(LARGEST_RESIDUAL, seconds / before.batch_s(items) - 1.0)
        if len(self.fits) == 1 and length in self.fits:
            return CostModel({length: after}, self.shares, self.residuals.follow(residual))
        fits = {**self.fits, length: after}
        if after.changed != 1.0:
            fits = {
                one: fit if one == length else fit.scaled(after.changed)
                for one, fit in fits.items()
            }
        shares = self.shares
        if len(fits) > 1:
            shares = {one: FORGET * shares.get(one, 0.0) for one in fits}
            shares[length] += items
        return CostModel(fits, shares, self.residuals.follow(residual))

    def batch_s(self, items: int, length: int = 0) -> float:
        """Seconds that a batch of so many items takes, padded to this length."""
        return self.fit(length).batch_s(items)

    @property
    def fixed_s(self) -> float:
        """Seconds of a batch before its items, over the mix of lengths."""
        return self._mean({length: fit.fixed_s for length, fit in self.fits.items()})

    @property
    def per_item_s(self) -> float:
        """Seconds that an item adds, over the mix of lengths."""
        return self._mean({length: fit.per_item_s for length, fit in self.fits.items()})

    def throughput(self, max_batch_size: int) -> float:
        """Items per second in full batches: the most that this replica can carry."""
        return max_batch_size / (self.fixed_s + self.per_item_s * max_batch_size)

    def fit(self, length: int) -> BatchCostFit:
        """The fit of a padded length."""
        fit = self.fits.get(length)
        if fit is None:
            # never timed: no cheaper than the next longer one that was, else the longest
            longer = [one for one in self.fits if one > length]
            fit = self.fits[min(longer) if longer else max(self.fits)]
        return fit

    def _mean(self, values: Mapping[int, float]) -> float:
        if len(values) == 1:
            return next(iter(values.values()))
        weight = sum(self.shares.values())
        return sum(self.shares.get(one, 0.0) * value for one, value in values.items()) / weight


def _check(items: int, seconds: float) -> None:
    if items < 1 or not 0.0 < seconds < float("inf"):
        raise ValueError(
            f"a timed batch has 1 item or more and finite seconds above 0; got {items}, {seconds}"
        )
