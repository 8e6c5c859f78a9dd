"""Learns the cost of an iteration from counters: time of each interval against its computed work.

n iterations took T seconds in which P prompt tokens were computed and sequences took G steps. Each
interval between two scrapes is one equation for the mean iteration. Sums are kept by the sequences
and prompt tokens of an iteration and fade only where newer ones come, so that a quiet hour does not
forget what a busy one showed. What they mean is `estimate.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from headroom.scaling.frozen import cached_property, replace
from headroom.scaling.generation.learning.iteration_cost import experts, sums
from headroom.scaling.generation.learning.iteration_cost.estimate import Estimate, estimate
from headroom.scaling.generation.learning.iteration_cost.mean_iterations import Intervals
from headroom.scaling.generation.learning.iteration_cost.ratios import Ratios
from headroom.scaling.generation.learning.iteration_cost.steadiness import RECENT_S, Steadiness
from headroom.scaling.generation.learning.iteration_cost.sums import Sums
from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.mathematics.flags import all_set, any_set
from headroom.scaling.values.tokens import IterationCost

HALF_LIFE_S = 1800.0
"""Half-life of a bin, in time during which it is refreshed."""
BIN_FACTOR = 1.5
PRIOR_ITERATIONS = 2000.0
"""Weight of a stated cost: that of so many iterations, half a minute of work."""
LEAST_ITERATIONS = 5.0
"""Fewer in an interval are not an average."""
OUTLIER_FACTOR = 5.0
"""An interval this many times slower than expected is a hang or a compilation, unless all have been
for RECENT_S: then it is another engine."""

Bin = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """Sums of the least squares by bin, and whether the engine has changed."""

    bins: Mapping[Bin, Sums] = field(default_factory=dict)
    steadiness: Steadiness = field(default_factory=Steadiness)
    iterations: float = 0.0
    """Iterations seen so far."""
    share: float = 0.0
    """k / E of the mixture of experts that was recognized last; 0 for none."""
    outliers_s: float = 0.0
    """For how long all intervals have been outliers."""

    def observe(
        self,
        intervals: Intervals,
        ratios: Ratios,
        elapsed_s: float,
        expected: IterationCost | None = None,
    ) -> Ledger:
        """Return the ledger with one interval of each replica."""
        columns = intervals.columns(ratios)
        usable = (intervals.iterations >= LEAST_ITERATIONS) & (intervals.seconds > 0.0)
        usable &= np.isfinite(columns.sum(axis=1) + intervals.seconds)
        steadiness, bins, ratio = self.steadiness, self.bins, intervals.seconds
        if not any_set(usable):
            return self
        outliers_s = 0.0
        if expected is not None:
            expected_s = intervals.expected_s(columns, expected)
            ratio = intervals.seconds / np.maximum(expected_s, _LEAST_S)
            usual = usable & (ratio <= OUTLIER_FACTOR)
            if any_set(usual):
                usable = usual
            else:
                outliers_s = self.outliers_s + max(0.0, elapsed_s)
                if outliers_s < RECENT_S:
                    return replace(self, outliers_s=outliers_s)
        if not all_set(usable):
            intervals, columns, ratio = intervals.chosen(usable), columns[usable], ratio[usable]
        weights = intervals.iterations
        if expected is not None:
            logarithm = float((np.log(ratio) * weights).sum() / weights.sum())
            engine_s = float((weights * intervals.seconds).sum())
            steadiness, factor = steadiness.observe(logarithm, engine_s, elapsed_s)
            if factor != 1.0:
                bins = {key: sums.rescaled(one, factor) for key, one in bins.items()}
        bins = _with_bins(bins, _by_bin(columns, intervals), elapsed_s)
        iterations = self.iterations + float(weights.sum())
        return replace(
            self,
            bins=bins,
            steadiness=steadiness,
            iterations=iterations,
            outliers_s=outliers_s,
        )

    def observe_sums(
        self, xx: Vector, xy: Vector, ratios: Ratios, elapsed_s: float, prompt_tokens: float
    ) -> Ledger:
        """Return the ledger with exact sums over iterations, X'X [5, 5] and X'y [5].

        The two columns of prompts become one by their ratio. Experts are not among them: what is
        read of them is that of the mean iteration.
        """
        count, seconds = float(xx[0, 0]), float(xy[0])
        if count < LEAST_ITERATIONS or seconds <= 0.0:
            return self
        merge = np.eye(5, sums.TERMS)
        merge[4, 1] = ratios.product_per_prompt
        weight = count / seconds
        inner, right = weight * merge.T @ xx @ merge, weight * merge.T @ xy
        sequences, computed = float(xx[0, 2]) / count, float(xx[0, 1]) / count
        with_prompts = experts.prompt_iterations(computed / max(1.0, prompt_tokens))
        mean = np.array([[1.0, 0.0, sequences, 0.0]])
        read = experts.touched(_SHARES, mean[:, 2], np.array([with_prompts]))
        found = sums.rows(mean, read, np.array([count]), np.array([seconds / count]))[0]
        found[sums.INNER], found[sums.PRODUCTS] = inner[sums.LEFT, sums.RIGHT], right
        found[sums.INTERVALS] = count  # each iteration was seen alone
        of_read = found[sums.READ :].reshape(-1, sums.PER_SHARE)
        of_read[:, : sums.TERMS] = read[0][:, np.newaxis] * inner[0]
        key = _key(sequences, computed)
        bins = _with_bins(self.bins, {key: tuple(found.tolist())}, elapsed_s)
        return replace(self, bins=bins, iterations=self.iterations + count)

    def fit(
        self, ratios: Ratios, stated: IterationCost | None = None, at_load: Vector | None = None
    ) -> Estimate | None:
        """Return the estimate of the cost; None before the first iteration.

        A stated cost is scaled to what was seen, then counts as PRIOR_ITERATIONS at an idle engine,
        a full one and one that computes prompts.
        """
        if not self.bins:
            return None
        total = sums.total(self.bins.values())
        if stated is not None:
            total = total + _stated(total, stated)
        return estimate(total, ratios, self.share, self.steadiness.noise_s, at_load)

    @cached_property
    def spread(self) -> float:
        """Largest over smallest mean time of an iteration that was seen; 1 if all were alike."""
        times = [
            one[sums.ITERATIONS] / one[1]
            for one in self.bins.values()
            if one[sums.ITERATIONS] > 10.0 and one[1] > 0.0
        ]
        return max(times) / min(times) if times else 1.0


_POINTS = np.array(
    [[1.0, 0.0, 1.0, 2000.0], [1.0, 0.0, 64.0, 128_000.0], [1.0, 4096.0, 32.0, 64_000.0]]
)
"""1, prompt tokens, sequences and contexts of an idle engine, a full one, one with a prompt."""
_SHARES = np.array(experts.SHARES)
_LEAST_S = 1e-12


def _stated(total: Vector, stated: IterationCost) -> Vector:
    """Return the sums of PRIOR_ITERATIONS of the stated cost, scaled to the measured times."""
    share = experts.nearest(stated.expert_share) if stated.experts_s > 0.0 else 0.0
    seen = sums.squares(total, share)
    parts = [stated.fixed_s, stated.prompt_token_s, stated.sequence_s, stated.context_token_s]
    known = np.array([*parts, stated.experts_s][: len(seen.products)])
    factor = float(known @ seen.products) / max(float(known @ seen.inner @ known), _LEAST_S)
    factor = 1.0 + seen.iterations / (seen.iterations + PRIOR_ITERATIONS) * (factor - 1.0)
    prompt_share = (_POINTS[:, 1] > 0.0).astype(float)
    read = experts.touched(_SHARES, _POINTS[:, 2], prompt_share)
    taken_s = _POINTS @ np.array(parts)
    if share > 0.0:
        taken_s = taken_s + stated.experts_s * read[:, experts.SHARES.index(share)]
    each = np.full(len(_POINTS), PRIOR_ITERATIONS / len(_POINTS))
    found: Vector = sums.rows(_POINTS, read, each, factor * taken_s).sum(axis=0)
    return found


def _key(sequences: float, prompt_tokens: float) -> Bin:
    return (
        int(math.log1p(max(0.0, sequences)) / math.log(BIN_FACTOR)),
        int(math.log1p(max(0.0, prompt_tokens)) / math.log(BIN_FACTOR**2)),
    )


def _by_bin(columns: Vector, intervals: Intervals) -> dict[Bin, Sums]:
    """Return the sums of each bin; every interval counts."""
    read = experts.touched(_SHARES, intervals.sequences, intervals.prompt_share)
    rows = sums.rows(columns, read, intervals.iterations, intervals.seconds)
    numbers = np.array((intervals.sequences, intervals.prompt_tokens))
    keys = (np.log1p(np.maximum(0.0, numbers)) / _WIDTHS).astype(int)
    flat = keys[0] * _KEYS + keys[1]
    order = np.argsort(flat, kind="stable")
    found, starts = np.unique(flat[order], return_index=True)
    summed = np.add.reduceat(rows[order], starts, axis=0).tolist()
    return {divmod(key, _KEYS): tuple(one) for key, one in zip(found.tolist(), summed, strict=True)}


_KEYS = 64
_WIDTHS = np.log([[BIN_FACTOR], [BIN_FACTOR**2]])


def _with_bins(
    bins: Mapping[Bin, Sums], added: Mapping[Bin, Sums], elapsed_s: float
) -> dict[Bin, Sums]:
    """Return the bins with these sums; only those fade that newer ones come to."""
    fade = 0.5 ** (max(0.0, elapsed_s) / HALF_LIFE_S)
    return {**bins, **{key: sums.faded(bins.get(key), fade, one) for key, one in added.items()}}
