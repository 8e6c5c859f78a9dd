"""The batch cost, learnt online: an affine fit over (mean batch size, mean batch seconds) pairs.

Pairs are remembered by size, in bins of factor 1.5, and forgotten only as newer ones of the same
size arrive. Were they forgotten by time alone, a service with replicas to spare would see only
small batches, unlearn what a full one costs, and keep the spare replicas for that.

A server may claim a cost that it measured when it warmed up: PRIOR_BATCHES batches of one and as
many full ones count as such a prior, so the fit is defined from the first tick and cannot tilt
while traffic shows only one batch size. Where none is claimed a faint doubt takes its place: full
batches might gain nothing over what was seen.

How much an execution varies (cv) follows from the residuals: n batches of standard deviation s have
a mean of deviation s / sqrt(n), so that n times the squared residual estimates s squared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headroom.scaling.values import CostModel, PodSample

PRIOR_BATCHES = 20.0
DOUBT_BATCHES = 0.1
HALF_LIFE_S = 1800.0
"""Of what a bin remembers, in time in which it is refreshed. Long, since a tail is learnt slowly:
the cv of 500 lognormal executions of cv 1 is off by 13 %, of 20 000 by 2 %."""
BIN_FACTOR = 1.5
RECENT_HALF_LIFE_S = 20.0
SURPRISE_RATIO, SURPRISE_DEVIATIONS = 1.15, 5.0
"""Recent executions this far from the fit, and as many deviations of their mean: a new cost."""
KEPT_AFTER_SURPRISE = 0.02
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


Sums = tuple[float, ...]
"""Weighted sums over pairs: batches, sizes, sizes squared, seconds, seconds squared, products; and
the number of pairs."""
SUMS = 7
_NOTHING: Sums = (0.0,) * SUMS


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLearner:
    """The sums of a least-squares line through (size, seconds), by bin of size."""

    bins: Mapping[int, Sums] = field(default_factory=dict)
    recent: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Batches of the last half minute, their seconds, and the seconds that the fit had expected."""

    def observe(
        self,
        pairs: Iterable[tuple[float, float, float]],
        elapsed_s: float,
        expected: CostModel | None = None,
    ) -> CostLearner:
        """Return the learner with (batches, mean size, mean seconds) pairs added.

        What takes OUTLIER_FACTOR times as long as `expected` is left out. When the recent batches
        contradict `expected` beyond chance, the past is scaled to them and nearly forgotten: what
        every request costs has changed, and the sizes not seen since have changed with it.
        """
        usual = [
            (batches, size, mean_s)
            for batches, size, mean_s in pairs
            if size > 0 < mean_s
            if expected is None or mean_s <= OUTLIER_FACTOR * expected.batch_s(size)
        ]
        if not usual:
            return self
        bins, recent = self.bins, self.recent
        if expected is not None:
            recent = _recent(recent, usual, expected, elapsed_s)
            known = sum(sums[6] for sums in bins.values()) >= FEWEST_INTERVALS
            ratio = _surprise(recent, expected.cv if known else max(1.0, expected.cv))
            if ratio is not None:
                _, took_s, expected_s = _recent((0.0, 0.0, 0.0), usual, expected, 0.0)
                ratio = took_s / expected_s if expected_s > 0 else ratio
                bins = {number: _rescaled(sums, ratio) for number, sums in bins.items()}
                recent = (0.0, 0.0, 0.0)
        return CostLearner(bins=_with(bins, usual, elapsed_s), recent=recent)

    def fit(self, claim: Claim | None) -> CostModel | None:
        """Return the fitted cost; None while the server has not said how large a batch may be.

        None too while neither a claim nor a batch is known.
        """
        if claim is None or (claim.cost is None and not self.bins):
            return None
        seen: Sums = tuple(map(sum, zip(*self.bins.values(), strict=True))) or _NOTHING
        full = float(claim.max_batch)
        if claim.cost is not None:
            scale = _scale(seen, claim.cost)
            sums = _plus(seen, PRIOR_BATCHES, 1.0, scale * claim.cost.batch_s(1))
            sums = _plus(sums, PRIOR_BATCHES, full, scale * claim.cost.batch_s(full))
        else:
            _, sizes, _, seconds, *_ = seen
            sums = _plus(seen, DOUBT_BATCHES, full, full * seconds / sizes)
        fixed_s, per_item_s = _line(sums)
        return CostModel(
            fixed_s=fixed_s,
            per_item_s=per_item_s,
            max_batch=claim.max_batch,
            slots=claim.slots,
            cv=_variation(seen),
        )


def _with(
    bins: Mapping[int, Sums], pairs: Iterable[tuple[float, float, float]], elapsed_s: float
) -> dict[int, Sums]:
    """Return the bins with pairs added; only those that are refreshed fade."""
    fresh: dict[int, Sums] = {}
    for batches, size, mean_s in pairs:
        number = _bin(size)
        fresh[number] = _plus(fresh.get(number, _NOTHING), batches, size, mean_s)
    fade = 0.5 ** (max(0.0, elapsed_s) / HALF_LIFE_S)
    added = {
        number: tuple(fade * old + new for old, new in zip(bins[number], sums, strict=True))
        if number in bins
        else sums
        for number, sums in fresh.items()
    }
    return {**bins, **added}


def _recent(
    recent: tuple[float, float, float],
    pairs: Iterable[tuple[float, float, float]],
    expected: CostModel,
    elapsed_s: float,
) -> tuple[float, float, float]:
    fade = 0.5 ** (max(0.0, elapsed_s) / RECENT_HALF_LIFE_S)
    count, took_s, expected_s = (fade * value for value in recent)
    for batches, size, mean_s in pairs:
        count += batches
        took_s += batches * mean_s
        expected_s += batches * expected.batch_s(size)
    return count, took_s, expected_s


def _surprise(recent: tuple[float, float, float], cv: float) -> float | None:
    """Return by which factor recent executions differ from the fit; None where chance explains it.

    Worked: cv 1 and 100 batches: a mean is within 1 +- 5 / 10, so only a factor above 1.5 counts.
    """
    count, took_s, expected_s = recent
    if count < FEWEST_INTERVALS or expected_s <= 0:
        return None
    ratio = took_s / expected_s
    chance = SURPRISE_DEVIATIONS * cv / math.sqrt(count)
    if 1 / SURPRISE_RATIO <= ratio <= SURPRISE_RATIO or abs(ratio - 1) <= chance:
        return None
    return ratio


def _rescaled(sums: Sums, ratio: float) -> Sums:
    """Return sums as if every execution had taken `ratio` times as long, with little weight."""
    weight, sizes, sizes_squared, seconds, seconds_squared, products, pairs = (
        KEPT_AFTER_SURPRISE * total for total in sums
    )
    return (
        weight,
        sizes,
        sizes_squared,
        ratio * seconds,
        ratio**2 * seconds_squared,
        ratio * products,
        pairs,
    )


def _scale(seen: Sums, claimed: CostModel) -> float:
    """Return what to multiply a claim with: how much longer than claimed the batches seen took.

    A claim that is wrong is wrong for the sizes not seen too. Shrunk towards 1 while little is
    seen. Worked: claimed 1.5 times too fast, 60 batches seen: 1 + 60 / 80 x 0.5 = 1.375.
    """
    weight, sizes, _, seconds, *_ = seen
    claimed_s = weight * claimed.fixed_s + sizes * claimed.per_item_s
    if claimed_s <= 0:
        return 1.0
    return 1.0 + weight / (weight + PRIOR_BATCHES) * (seconds / claimed_s - 1.0)


def _bin(size: float) -> int:
    """Return the bin of a size: 0 for batches of one, then (1, 1.5], (1.5, 2.25] and so on."""
    return 0 if size <= 1.0 else 1 + int(math.log(size) / math.log(BIN_FACTOR))


def _plus(sums: Sums, batches: float, size: float, mean_s: float) -> Sums:
    weight, sizes, sizes_squared, seconds, seconds_squared, products, pairs = sums
    return (
        weight + batches,
        sizes + batches * size,
        sizes_squared + batches * size * size,
        seconds + batches * mean_s,
        seconds_squared + batches * mean_s * mean_s,
        products + batches * size * mean_s,
        pairs + 1.0,
    )


def _line(sums: Sums) -> tuple[float, float]:
    """Return fixed and per-item seconds of the least-squares line.

    A line with a negative part is replaced by the nearest without one: through the origin, or flat.
    """
    weight, sizes, sizes_squared, seconds, _, products, _ = sums
    spread = sizes_squared * weight - sizes**2
    if spread <= 1e-9 * weight**2:  # one size only: of one request each
        return seconds / weight, 0.0
    per_item_s = (products * weight - sizes * seconds) / spread
    fixed_s = (seconds - per_item_s * sizes) / weight
    if fixed_s < 0:
        return 0.0, products / sizes_squared
    if per_item_s < 0:
        return seconds / weight, 0.0
    return fixed_s, per_item_s


def _variation(seen: Sums) -> float:
    """Return the coefficient of variation of one execution around the line."""
    weight, sizes, sizes_squared, seconds, seconds_squared, products, pairs = seen
    if pairs < FEWEST_INTERVALS:
        return 0.0
    fixed_s, per_item_s = _line(seen)
    squares = (
        seconds_squared
        - 2 * (fixed_s * seconds + per_item_s * products)
        + fixed_s**2 * weight
        + 2 * fixed_s * per_item_s * sizes
        + per_item_s**2 * sizes_squared
    )
    cv = math.sqrt(max(0.0, squares) / (pairs - 2)) * weight / seconds
    return cv if cv > _NEGLIGIBLE_CV else 0.0
