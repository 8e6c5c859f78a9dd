"""Learns the batch cost online: an affine fit over (mean batch size, mean batch seconds) pairs.

Pairs are kept by size, in bins of factor 1.5, and fade only as newer ones of the same size arrive.
If they faded with time alone, a service with spare replicas would see only small batches, forget
what a full one costs, and keep the spare replicas because of that. The line is that of the usual
replica: each pair is divided by the speed factor of its replica.

A server may report a cost that it measured at warm-up. It counts as a prior, as much as
PRIOR_BATCHES batches of one and as many full ones, so the fit is defined from the first tick and
cannot tilt while the traffic has only one batch size. Without a report a weak prior takes its
place: full batches might gain nothing over the observed ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from headroom.scaling.cost.change_detection import KEPT, detect_change
from headroom.scaling.cost.claims import Claim
from headroom.scaling.cost.execution_variation import ExecutionVariation
from headroom.scaling.cost.line_fit import NOTHING, Sums, line, plus
from headroom.scaling.cost.outliers import outlying, too_fast
from headroom.scaling.cost.plausible_intervals import ROUNDING, plausible
from headroom.scaling.cost.replica_speeds import ReplicaSpeeds
from headroom.scaling.cost.size_bins import bin_of, changed, with_intervals
from headroom.scaling.cost.sudden_change import changes_suddenly
from headroom.scaling.frozen import replace
from headroom.scaling.values.observation import CostModel
from headroom.scaling.windows.window_totals import BatchStats

PRIOR_BATCHES = 20.0
DOUBT_BATCHES, DOUBT_SIZE = 0.1, 32.0
"""Weight of the doubt that full batches gain anything, and the largest batch at which it is that.
Beyond, its leverage on the slope stays that of 32, because a line turns with weight x size^2.
Worked: of 256 with a weight of 0.1 it outweighed a thousand batches of 7 to 11 requests, so each
replica that was added made a request seem more expensive, and two replicas became 31."""
HALF_LIFE_S = 1800.0
"""Half-life of a bin, in time during which it is refreshed. Long, because a tail is learned slowly:
the cv of 500 lognormal executions of cv 1 is off by 13 %, that of 20 000 by 2 %."""
DISTRUSTED_S = 90.0
"""For how long nothing is learned from a replica whose executed times, or the requests in them, the
others contradicted: counters that were wrong once also jump when they are right again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLearner:
    """The sums of a least-squares line by bin of size, the variation, and the replicas' speeds."""

    bins: Mapping[int, Sums] = field(default_factory=dict)
    variation: ExecutionVariation = field(default_factory=ExecutionVariation)
    speeds: ReplicaSpeeds = field(default_factory=ReplicaSpeeds)
    distrusted: Mapping[str, float] = field(default_factory=dict)
    """For how many seconds more nothing is learned from the executions of a replica."""

    def observe(
        self,
        intervals: Iterable[BatchStats],
        elapsed_s: float,
        expected: CostModel | None = None,
        doubted: AbstractSet[str] = frozenset(),
        wrong: AbstractSet[str] = frozenset(),
    ) -> CostLearner:
        """Return the learner with one interval of each replica added.

        Of `doubted` replicas, which may have to be replaced, only the speed is learned; of those
        whose executed times are `wrong`, nothing for a while.
        Intervals that take OUTLIER_FACTOR times as long as `expected` are ignored. If the recent
        batches contradict `expected` by more than chance, the past is scaled to them and nearly
        forgotten: the cost of every request has changed, also for sizes that were not observed
        since.
        """
        usual = plausible(intervals, expected, elapsed_s)
        fast = too_fast(usual, expected) if expected is not None else frozenset()
        if not (self.distrusted or fast or wrong):
            return self._taught(usual, elapsed_s, expected, doubted)
        left = self._distrusting(fast | wrong, elapsed_s)
        usual = [one for one in usual if one.replica not in left.distrusted]
        return left._taught(usual, elapsed_s, expected, doubted)

    def _distrusting(self, wrong: AbstractSet[str], elapsed_s: float) -> CostLearner:
        """Return the learner after this time, without the speeds of distrusted replicas."""
        before = self.distrusted.items()
        kept = {one: left_s - elapsed_s for one, left_s in before if left_s > elapsed_s}
        distrusted = kept | dict.fromkeys(wrong, DISTRUSTED_S)
        return replace(
            self,
            variation=self.variation.interrupted(distrusted.keys()),
            speeds=self.speeds.only(self.speeds.sums.keys() - distrusted.keys()),
            distrusted=distrusted,
        )

    def _taught(
        self,
        usual: list[BatchStats],
        elapsed_s: float,
        expected: CostModel | None,
        doubted: AbstractSet[str],
    ) -> CostLearner:
        """Return the learner with these intervals added."""
        if not usual:
            return self
        fade = 0.5 ** (max(0.0, elapsed_s) / HALF_LIFE_S)
        if expected is None:
            return replace(self, bins=with_intervals(self.bins, usual, fade, {}))
        every, factors = usual, self.speeds.factors
        known_cv = self.variation.cv if self.variation.known else None
        doubted |= outlying(every, expected, factors, known_cv) | self.speeds.incredible
        if doubted:
            usual = [one for one in every if one.replica not in doubted]
        variation = self.variation.observe(usual, expected, fade, factors)
        known_cv = variation.cv if variation.known else None
        speeds = self.speeds.observe(every, expected, elapsed_s, known_cv)
        chance_cv = expected.cv if variation.known else max(1.0, expected.cv)
        bins, ratio = self.bins, detect_change(speeds.together(doubted), chance_cv)
        sudden = self.variation.known and changes_suddenly(bins, usual, factors, expected.cv)
        if sudden or ratio is not None:
            ratio = _latest_ratio(usual, expected, speeds.factors) or ratio or 1.0
            bins = changed(bins, ratio, usual)
            variation = self.variation.still_known() if sudden else variation.fewer(KEPT)
            speeds = speeds.rescaled(ratio)
        return CostLearner(
            bins=with_intervals(bins, usual, fade, speeds.factors),
            variation=variation,
            speeds=speeds,
            distrusted=self.distrusted,
        )

    def only(self, replicas: AbstractSet[str]) -> CostLearner:
        """Return the learner without data of other replicas; the cost learned from them is kept."""
        variation, speeds = self.variation.only(replicas), self.speeds.only(replicas)
        if variation is self.variation and speeds is self.speeds:
            return self
        return replace(self, variation=variation, speeds=speeds)

    def resumed(self) -> CostLearner:
        """Return the learner after a time that it has not seen: no interval follows its last."""
        variation = self.variation.interrupted(self.variation.latest.keys())
        return replace(self, variation=variation, speeds=replace(self.speeds, recent={}))

    def saw_full_batches_only(self, claim: Claim | None) -> bool:
        """Return whether smaller batches were never seen: replicas were overloaded from the first.

        What is fitted then is that a batch of one takes as long as a full one.
        """
        if claim is None or claim.cost is not None or claim.max_batch == 1 or not self.bins:
            return False
        return min(self.bins) >= bin_of(float(claim.max_batch))

    def fit(self, claim: Claim | None) -> CostModel | None:
        """Return the fitted cost; None while the largest batch of the server is unknown.

        Also None while there is neither a reported cost nor an executed batch.
        """
        if claim is None or (claim.cost is None and not self.bins):
            return None
        full, most = float(claim.max_batch), bin_of(ROUNDING * claim.max_batch * claim.slots)
        bins = self.bins
        if bins and max(bins) > most:  # no server forms such batches any more
            bins = {number: sums for number, sums in bins.items() if number <= most} or bins
        seen: Sums = tuple(map(sum, zip(*bins.values(), strict=True))) or NOTHING
        if claim.cost is not None:
            scale = _scale(seen, claim.cost)
            sums = plus(seen, PRIOR_BATCHES, 1.0, scale * claim.cost.batch_s(1))
            sums = plus(sums, PRIOR_BATCHES, full, scale * claim.cost.batch_s(full))
        else:
            _, sizes, _, seconds, *_ = seen
            doubt = DOUBT_BATCHES * min(1.0, DOUBT_SIZE / full) ** 2
            sums = plus(seen, doubt, full, full * seconds / sizes)
        fixed_s, per_item_s = line(sums)
        return CostModel(
            fixed_s=fixed_s,
            per_item_s=per_item_s,
            max_batch=claim.max_batch,
            slots=claim.slots,
            cv=self.variation.cv,
        )


def _latest_ratio(
    intervals: Iterable[BatchStats], expected: CostModel, factors: Mapping[str, float]
) -> float | None:
    """Return how many times as long as expected these took; None if nothing was expected."""
    took_s = expected_s = 0.0
    for replica, batches, size, mean_s in intervals:
        took_s += batches * mean_s
        expected_s += batches * factors.get(replica, 1.0) * expected.batch_s(size)
    return took_s / expected_s if expected_s > 0 else None


def _scale(seen: Sums, claimed: CostModel) -> float:
    """Return the factor on a reported cost: observed over reported seconds.

    A report that is wrong is also wrong for sizes that were not observed. Shrunk towards 1 while
    there are few observations. Worked: reported 1.5 times too fast, 60 batches observed: 1 + 60 /
    80 x 0.5 = 1.375.
    """
    weight, sizes, _, seconds, *_ = seen
    claimed_s = weight * claimed.fixed_s + sizes * claimed.per_item_s
    if claimed_s <= 0:
        return 1.0
    return 1.0 + weight / (weight + PRIOR_BATCHES) * (seconds / claimed_s - 1.0)
