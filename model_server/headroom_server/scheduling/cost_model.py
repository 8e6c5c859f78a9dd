"""Batch costs per padded length: initialized by warm-up, updated with every batch. Pure.

A model without a dynamic dimension has only length 0. If one length changes its speed, the others
are assumed to change with it (a throttled device is slow at everything) until their own batches
show otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headroom_server.scheduling.batch_cost_fit import FORGET, BatchCostFit, FitSums, warm_fit

LARGEST_RESIDUAL = 1.0


WEIGHT = 0.05
"""Weight of the latest sample: a change is followed within about 40 samples."""


class EwmaSpread(NamedTuple):
    """Exponentially weighted mean and mean deviation, as in RFC 6298; `follow` adds a sample."""

    mean: float = 0.0
    deviation: float = 0.0

    @property
    def high(self) -> float:
        """About the 95th percentile: for a normal distribution mean + 1.6 sigma. At least 0."""
        return max(0.0, self.mean + 2.0 * self.deviation)

    def follow(self, sample: float) -> EwmaSpread:
        """Add a sample."""
        off = sample - self.mean
        return EwmaSpread(
            self.mean + WEIGHT * off, self.deviation + WEIGHT * (abs(off) - self.deviation)
        )


class Timing(NamedTuple):
    """One executed batch: padded size, seconds, padded length."""

    items: int
    seconds: float
    length: int = 0


class CostModel(NamedTuple):
    """The fits per length; `observe` returns the next model."""

    fits: Mapping[int, BatchCostFit]
    shares: Mapping[int, float]
    """Recent items per length, older ones with less weight."""
    residuals: EwmaSpread
    """Measured over fitted times, minus 1."""

    @classmethod
    def from_warm_up(
        cls, timings: Iterable[tuple[int, float] | tuple[int, float, int]]
    ) -> CostModel:
        """Fit (items, seconds) or (items, seconds, length) of warm batches.

        Raises:
            ValueError: there are none, or one is not positive.
        """
        warm: dict[int, FitSums] = {}
        known = [Timing(*timing) for timing in timings]
        for timing in known:
            _check(timing.items, timing.seconds)
            warm[timing.length] = warm.get(timing.length, FitSums()).add(
                timing.items, timing.seconds
            )
        if not warm:
            raise ValueError("a cost model must have at least one timed batch; got none")
        fits = {length: warm_fit(sums) for length, sums in sorted(warm.items())}
        residuals = EwmaSpread()
        for timing in known:
            usual_s = fits[timing.length].batch_s(timing.items)
            residuals = residuals.follow(min(LARGEST_RESIDUAL, timing.seconds / usual_s - 1.0))
        return cls(fits, dict.fromkeys(fits, 1.0), residuals)

    @property
    def tail(self) -> float:
        """About the 95th percentile of residuals: 0.1 is a batch 10 % slower than fitted."""
        return self.residuals.high

    def observe(self, items: int, seconds: float, length: int = 0) -> CostModel:
        """Add one executed batch."""
        _check(items, seconds)
        before = self.fit(length)
        after = before.observe(items, seconds, self.tail)
        residual = min(LARGEST_RESIDUAL, seconds / before.batch_s(items) - 1.0)
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
        """Return the seconds of a batch of this many items, padded to this length."""
        return self.fit(length).batch_s(items)

    @property
    def fixed_s(self) -> float:
        """Seconds per batch independent of its items, averaged over the mix of lengths."""
        return self._mean({length: fit.fixed_s for length, fit in self.fits.items()})

    @property
    def per_item_s(self) -> float:
        """Seconds per item, averaged over the mix of lengths."""
        return self._mean({length: fit.per_item_s for length, fit in self.fits.items()})

    def throughput(self, max_batch_size: int) -> float:
        """Return items per second in full batches: the capacity of this replica."""
        return max_batch_size / (self.fixed_s + self.per_item_s * max_batch_size)

    def fit(self, length: int) -> BatchCostFit:
        """Return the fit of a padded length."""
        fit = self.fits.get(length)
        if fit is None:
            # never timed: assume the next longer length that was timed, else the longest
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
            f"a timed batch must have at least 1 item and finite seconds above 0; got {items}, "
            f"{seconds}"
        )
