"""Learns what an iteration costs, from counters: T = a n + b P + d' G over each interval.

n iterations took T seconds in which P prompt tokens were computed and sequences took G steps. Each
interval between two scrapes is one equation for the mean iteration; its weight is n / t^2, because
errors are shares of the time. Sums are kept by the sequences and prompt tokens of an iteration and
fade only where newer ones come, so that a quiet hour does not forget what a busy one showed.

Counters of one mix cannot tell d from c ctx, nor b from e: their ratios come from a prior or from
measured engines, and enter as fixed parts of the columns. So a longer context costs more at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.flags import Flags, all_set, any_set
from headroom.scaling.frozen import replace
from headroom.scaling.generation import experts
from headroom.scaling.generation.experts import NO_EXPERTS, Experts
from headroom.scaling.token_values import IterationCost

Vector = NDArray[np.float64]
SUMS = 12
"""Iterations, upper triangle of X'X (6), X'y (3), sequences and iterations with prompts."""
HALF_LIFE_S = 1800.0
"""Of a bin, in time during which it is refreshed."""
BIN_FACTOR = 1.5
PRIOR_ITERATIONS = 2000.0
"""Weight of a stated cost: that of so many iterations, half a minute of work."""
DOUBT_ITERATIONS = 20.0
LEAST_ITERATIONS = 5.0
"""Fewer in an interval are not an average."""
OUTLIER_FACTOR = 5.0
"""An interval so many times slower than expected is a hang or a compilation."""
CHANGED, KEPT = 1.15, 0.05
"""The recent iterations take so many times as long as expected, or as short: the engine is another
one, and what was learned counts for little against what is seen now."""
RECENT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratios:
    """What counters cannot tell apart, over what they can."""

    context_per_sequence: float = 1.9e-3
    """c / d; H100, H200, A100 and L40S: 0.6e-3 to 5.6e-3, median 1.9e-3."""
    product_per_prompt: float = 4.5e-5
    """e / b; 2.7e-5 to 6.2e-5, median 4.5e-5."""
    experts_per_fixed: float = 0.0
    """f / a; 0 for a dense model."""
    expert_share: float = 0.0
    prompt_per_fixed: float = 3.4e-3
    """b / a; only where the load has not shown it."""
    sequence_per_fixed: float = 2.6e-3
    """d / a; only where the load has not shown it."""

    @classmethod
    def of(cls, prior: IterationCost | None) -> Ratios:
        """Return the ratios of a stated cost; those of measured engines without one."""
        if prior is None:
            return cls()
        usual = cls()
        return cls(
            context_per_sequence=_ratio(
                prior.context_token_s, prior.sequence_s, usual.context_per_sequence
            ),
            product_per_prompt=_ratio(
                prior.prompt_product_s, prior.prompt_token_s, usual.product_per_prompt
            ),
            experts_per_fixed=_ratio(prior.experts_s, prior.fixed_s, 0.0),
            expert_share=prior.expert_share,
            prompt_per_fixed=_ratio(prior.prompt_token_s, prior.fixed_s, usual.prompt_per_fixed),
            sequence_per_fixed=_ratio(prior.sequence_s, prior.fixed_s, usual.sequence_per_fixed),
        )

    def cost(self, fixed_s: float, prompt_s: float, sequence_s: float) -> IterationCost:
        """Return the cost with the parts that counters cannot show."""
        return IterationCost(
            fixed_s=fixed_s,
            prompt_token_s=prompt_s,
            sequence_s=sequence_s,
            context_token_s=self.context_per_sequence * sequence_s,
            prompt_product_s=self.product_per_prompt * prompt_s,
            experts_s=self.experts_per_fixed * fixed_s,
            expert_share=self.expert_share,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Intervals:
    """The mean iteration of each interval; one entry per replica."""

    iterations: Vector
    seconds: Vector
    """Of one iteration."""
    prompt_tokens: Vector
    sequences: Vector
    context_tokens: Vector
    products: Vector
    prompt_share: Vector
    """Share of the iterations that compute a prompt."""

    def columns(self, ratios: Ratios) -> Vector:
        """Return [intervals, 3]: what a, b and d are multiplied by, without experts."""
        columns = np.empty((len(self.iterations), 3))
        columns[:, 0] = 1.0
        columns[:, 1] = self.prompt_tokens + ratios.product_per_prompt * self.products
        columns[:, 2] = self.sequences + ratios.context_per_sequence * self.context_tokens
        return columns

    def chosen(self, flags: Flags) -> Intervals:
        """Return the intervals with a flag."""
        return Intervals(
            iterations=self.iterations[flags],
            seconds=self.seconds[flags],
            prompt_tokens=self.prompt_tokens[flags],
            sequences=self.sequences[flags],
            context_tokens=self.context_tokens[flags],
            products=self.products[flags],
            prompt_share=self.prompt_share[flags],
        )

    def expected_s(self, columns: Vector, cost: IterationCost) -> Vector:
        """Return the seconds of an iteration by this cost."""
        parts = np.array((cost.fixed_s, cost.prompt_token_s, cost.sequence_s))
        seconds: Vector = columns @ parts
        if cost.experts_s > 0.0:
            read = experts.touched(cost.expert_share, self.sequences, self.prompt_share)
            seconds = seconds + cost.experts_s * read
        return seconds


Sums = tuple[float, ...]
Bin = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Sums of the least squares by bin, and whether the engine has changed."""

    bins: Mapping[Bin, Sums] = field(default_factory=dict)
    recent: float = 0.0
    """Logarithm of measured over expected time, averaged over RECENT_S."""
    iterations: float = 0.0
    """That were ever seen."""
    experts: Experts = NO_EXPERTS
    """What the iterations say of a mixture of experts."""

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
        usable &= np.isfinite(columns[:, 1] + columns[:, 2] + intervals.seconds)
        recent, bins, ratio = self.recent, self.bins, intervals.seconds
        if expected is not None and any_set(usable):
            expected_s = intervals.expected_s(columns, expected)
            ratio = intervals.seconds / np.maximum(expected_s, _LEAST_S)
            usable &= ratio <= OUTLIER_FACTOR
        if not any_set(usable):
            return self
        if not all_set(usable):
            intervals, columns, ratio = intervals.chosen(usable), columns[usable], ratio[usable]
        weights = intervals.iterations
        if expected is not None:
            logarithm = float((np.log(ratio) * weights).sum() / weights.sum())
            gain = -math.expm1(-max(0.0, elapsed_s) / RECENT_S)
            recent += gain * (logarithm - recent)
            if abs(recent) > math.log(CHANGED):
                factor = math.exp(recent)
                bins = {key: _rescaled(sums, factor) for key, sums in bins.items()}
                recent = 0.0
        fade = 0.5 ** (max(0.0, elapsed_s) / HALF_LIFE_S)
        added = _by_bin(columns, intervals)
        bins = {**bins, **{key: _faded(bins.get(key), fade, sums) for key, sums in added.items()}}
        iterations = self.iterations + float(weights.sum())
        return replace(self, bins=bins, recent=recent, iterations=iterations)

    def observe_sums(
        self, xx: Vector, xy: Vector, ratios: Ratios, elapsed_s: float, prompt_tokens: float
    ) -> Ledger:
        """Return the ledger with exact sums over iterations, X'X [5, 5] and X'y [5].

        The five columns become three by the ratios; the expert term is not among them.
        """
        count, seconds = float(xx[0, 0]), float(xy[0])
        if count < LEAST_ITERATIONS or seconds <= 0.0:
            return self
        merge = np.zeros((5, 3))
        merge[0, 0] = merge[1, 1] = merge[2, 2] = 1.0
        merge[3, 2], merge[4, 1] = ratios.context_per_sequence, ratios.product_per_prompt
        scale = (count / seconds) ** 2
        inner, right = scale * merge.T @ xx @ merge, scale * merge.T @ xy
        sequences, computed = float(xx[0, 2]) / count, float(xx[0, 1]) / count
        shares = (sequences, experts.prompt_iterations(computed / max(1.0, prompt_tokens)))
        also = [scale * count * mean for mean in shares]
        sums = (count, *inner[_UPPER].tolist(), *right.tolist(), *also)
        fade = 0.5 ** (max(0.0, elapsed_s) / HALF_LIFE_S)
        key = _key(sequences, computed)
        bins = {**self.bins, key: _faded(self.bins.get(key), fade, sums)}
        return replace(self, bins=bins, iterations=self.iterations + count)

    def fit(self, ratios: Ratios, prior: IterationCost | None = None) -> IterationCost | None:
        """Return the cost; None while there is neither a prior nor an iteration.

        A prior is scaled to what was seen, then counts as PRIOR_ITERATIONS at an idle engine, a
        full one and one that computes prompts. Without it the same points, by the ratios of
        measured engines, count as DOUBT_ITERATIONS: they decide only what the load has not shown.
        """
        if not self.bins:
            return prior
        if ratios.experts_per_fixed <= 0.0 < self.experts.per_fixed:
            per_fixed, share = self.experts
            ratios = replace(ratios, experts_per_fixed=per_fixed, expert_share=share)
        stated = ratios.cost(1.0, ratios.prompt_per_fixed, ratios.sequence_per_fixed)
        weight = DOUBT_ITERATIONS
        if prior is not None:
            stated, weight = prior, PRIOR_ITERATIONS
        parts = np.array((stated.fixed_s, stated.prompt_token_s, stated.sequence_s))
        table = self._table()
        inner, right = _with_experts(table, ratios)
        # least squares for one factor on the stated cost
        factor = float(parts @ right) / max(float(parts @ inner @ parts), _LEAST_S)
        if prior is not None:
            seen = float(table[:, 0].sum())
            factor = 1.0 + seen / (seen + weight) * (factor - 1.0)
        for sequences, prompt_tokens in _POINTS:
            read = 1.0 if prompt_tokens else 1.0 - (1.0 - ratios.expert_share) ** sequences
            point = np.array((1.0 + ratios.experts_per_fixed * read, prompt_tokens, sequences))
            taken_s = factor * float(parts @ point)
            share = weight / (len(_POINTS) * taken_s * taken_s)
            inner = inner + share * np.outer(point, point)
            right = right + share * taken_s * point
        fixed_s, prompt_s, sequence_s = experts.non_negative(inner, right).tolist()
        return ratios.cost(fixed_s, prompt_s, sequence_s)

    def recognize(self) -> Ledger:
        """Return the ledger with what its bins say of a mixture of experts."""
        table = self._table()
        if len(table) < experts.LEAST_BINS:  # after a restart: what was known before
            return self
        found = experts.recognized(_matrices(table), table[:, 7:10], table[:, 0], _means(table))
        return self if found == self.experts else replace(self, experts=found)

    def _table(self) -> Vector:
        return np.array(list(self.bins.values())).reshape(-1, SUMS)

    @property
    def spread(self) -> float:
        """Largest over smallest mean time of an iteration that was seen; 1 if all were alike."""
        times = [
            sums[7] / sums[1] for sums in self.bins.values() if sums[0] > 10.0 and sums[1] > 0.0
        ]
        return max(times) / min(times) if times else 1.0


_POINTS = ((1.0, 0.0), (256.0, 0.0), (64.0, 4096.0))
"""Sequences and prompt tokens of an idle engine, a full one, and one that computes prompts."""
_LEAST_S = 1e-12


def _ratio(part: float, whole: float, usual: float) -> float:
    return part / whole if part > 0.0 and whole > 0.0 else usual


def _key(sequences: float, prompt_tokens: float) -> Bin:
    return (
        int(math.log1p(max(0.0, sequences)) / math.log(BIN_FACTOR)),
        int(math.log1p(max(0.0, prompt_tokens)) / math.log(BIN_FACTOR**2)),
    )


def _by_bin(columns: Vector, intervals: Intervals) -> dict[Bin, Sums]:
    """Return the sums of each bin; every interval counts."""
    counts, seconds, sequences = intervals.iterations, intervals.seconds, intervals.sequences
    weights = counts / seconds**2
    prompts, decoded = columns[:, 1], columns[:, 2]
    rows = np.empty((len(counts), SUMS))
    rows[:, 0] = counts
    rows[:, 1] = weights
    rows[:, 2] = prompts * weights
    rows[:, 3] = decoded * weights
    rows[:, 4] = prompts * prompts * weights
    rows[:, 5] = prompts * decoded * weights
    rows[:, 6] = decoded * decoded * weights
    rows[:, 7:10] = columns * (weights * seconds)[:, np.newaxis]
    rows[:, 10] = sequences * weights
    rows[:, 11] = intervals.prompt_share * weights
    numbers = np.array((sequences, intervals.prompt_tokens))
    keys = (np.log1p(np.maximum(0.0, numbers)) / _WIDTHS).astype(int)
    flat = keys[0] * _KEYS + keys[1]
    return {
        divmod(key, _KEYS): tuple(rows[flat == key].sum(axis=0).tolist())
        for key in sorted(set(flat.tolist()))
    }


_KEYS = 64
_WIDTHS = np.log([[BIN_FACTOR], [BIN_FACTOR**2]])
_UPPER = np.triu_indices(3)
_WHOLE = np.array((1, 2, 3, 2, 4, 5, 3, 5, 6))
"""Columns of the sums that make X'X, row by row."""


def _faded(before: Sums | None, fade: float, added: Sums) -> Sums:
    if before is None:
        return added
    return tuple(fade * old + new for old, new in zip(before, added, strict=True))


def _rescaled(sums: Sums, factor: float) -> Sums:
    """Return sums as if every iteration had taken `factor` times as long, with little weight.

    The weights n / t^2 fall by the factor's square, X'y by the factor.
    """
    inner, right = KEPT / factor**2, KEPT / factor
    return (
        KEPT * sums[0],
        *(inner * value for value in sums[1:7]),
        *(right * value for value in sums[7:10]),
        *(inner * value for value in sums[10:]),
    )


def _matrix(upper: Vector) -> Vector:
    whole = np.zeros((3, 3))
    whole[_UPPER] = whole[_UPPER[::-1]] = upper
    return whole


def _with_experts(table: Vector, ratios: Ratios) -> tuple[Vector, Vector]:
    """Return X'X and X'y of all bins, where the fixed part includes the experts that are read."""
    inner, right = _matrix(table[:, 1:7].sum(axis=0)), table[:, 7:10].sum(axis=0)
    if ratios.experts_per_fixed <= 0.0:
        return inner, right
    each = _matrices(table)
    read = experts.column(ratios.expert_share, each, _means(table))
    fixed = ratios.experts_per_fixed * read
    fixed[:, 0] += 1.0
    by_bin = np.einsum("bi,bij->bj", fixed, each)
    inner[0, :] = inner[:, 0] = by_bin.sum(axis=0)
    inner[0, 0] = (by_bin * fixed).sum()
    right[0] = (fixed * table[:, 7:10]).sum()
    return inner, right


def _matrices(table: Vector) -> Vector:
    return table[:, _WHOLE].reshape(-1, 3, 3)


def _means(table: Vector) -> Vector:
    """Return the mean sequences and share of iterations with prompts, [bins, 2]."""
    means: Vector = table[:, 10:12] / np.maximum(table[:, 1:2], _LEAST_S)
    return means
