"""Estimates the cost of an iteration from sums by least squares, with usual ratios of engines.

A load that hardly varies shows a line, and an infinity of curves. What decides is that the cost of
a decoding sequence is like that of a prompt token: both pass the same weights. On H100, H200, A100
and L40S d / b is 0.6 to 0.9, for a mixture of experts 1.2. Where sequences seem to cost 25 times as
much, iterations read more experts with each of them, and that ends. Worked: Qwen3 30B-A3B at a
steady load of 18 to 31 sequences: a line needs 0.28 ms per sequence, 22 times b, and is 13 % wrong
at full load; with 8 of 128 experts 0.010 ms suffice, and 2 % are left.

Usual ratios to b count as measurements of a given error each: the more has been seen, the less they
weigh. Experts are taken if they explain times and usual ratios far better than none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headroom.scaling.generation.learning.iteration_cost import experts, sums
from headroom.scaling.generation.learning.iteration_cost.least_squares import non_negative
from headroom.scaling.generation.learning.iteration_cost.ratios import PROMPT, Ratios
from headroom.scaling.generation.learning.iteration_cost.sums import TERMS, Squares
from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.values.tokens import IterationCost

ITERATION_CV = 0.05
"""Least variation of an iteration around its cost."""
ALIKE = 10.0
"""Intervals whose errors are those of one: lengths are not in the columns and last for a while."""
EVIDENCE, KEPT = 12.0, 6.0
"""Squared deviations by which a fit with experts must be better than one without; the second value
applies once experts were found. Six dense engines with four mixes of lengths: at most 6; mixtures
whose experts are not all read: at least 50, and 3 to 22 where no contexts are reported. To miss
them costs 20 % of the capacity, to see what is not there 6 %."""
OF_MISFIT = 0.1
"""And by this share of those without, because what no column describes adds up with time; of what
was taken half of it. Worked: answers of two tokens, times between tokens alone: with experts a
dense engine deviates by 15 of 335 less after 18 minutes, and would carry five times as much. A
mixture at a steady load: by 12 of 42 less after 4 minutes, 20 of 180 after 15."""
FAR_OFF = 4.0
"""Times its usual ratio at which a measured part may be a minimum of its own."""
LEAST_INTERVALS, LEAST_ITERATIONS = 60.0, 1000.0
"""Fewer may lie on a bent line by chance. Exact sums count each iteration as an interval, but what
is read of experts is known of their mean only."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The parts of the cost, and how well they fit."""

    share: float
    """Share of experts; 0 without."""
    parts: Vector
    """a, b, d, c, and f with experts."""
    deviations: float
    """Sum of squared deviations of times and ratios."""
    normal: Vector
    """X'X of times and ratios."""
    noise_s: float
    """Standard deviation of an error, in seconds."""

    def cost(self, ratios: Ratios) -> IterationCost:
        """Return the cost, with the part that counters cannot show."""
        fixed_s, prompt_s, sequence_s, context_s, *experts_s = self.parts.tolist()
        return IterationCost(
            fixed_s=fixed_s,
            prompt_token_s=prompt_s,
            sequence_s=sequence_s,
            context_token_s=context_s,
            prompt_product_s=ratios.product_per_prompt * prompt_s,
            experts_s=experts_s[0] if experts_s else 0.0,
            expert_share=self.share,
        )


def estimate(
    total: Vector,
    ratios: Ratios,
    before: float = 0.0,
    least_noise_s: float = 0.0,
    at_load: Vector | None = None,
) -> Estimate:
    """Return the cost that explains the sums best; `total` [SUMS], added up over bins.

    `before` is the share of experts that was taken last, which less evidence keeps; `least_noise_s`
    what an error of one deviation is at least, of a machine that is not as fast at all times;
    `at_load`, what a, b, d, c and f count in the time of a request of a full replica, as long as
    little load was seen: of the mixtures that explain it alike, the one then counts by which a
    full replica is slowest.
    """
    line = sums.squares(total)
    stated = ratios.experts_per_prompt > 0.0
    shares = [before] if before > 0.0 and at_load is None else []
    if stated:
        shares = [experts.nearest(ratios.expert_share)]
    elif not shares and line.intervals >= LEAST_INTERVALS and line.iterations >= LEAST_ITERATIONS:
        shares = [*experts.SHARES]
    mixtures = [sums.squares(total, share) for share in shares]
    measured = [non_negative(one.inner, one.products) for one in (line, *mixtures)]
    scale_s = _prompt_token_s(line, float(measured[0][PROMPT]), ratios)
    noise_s = _noise_s(line, min(map(_left_s, (line, *mixtures), measured)))
    noise_s = max(noise_s, least_noise_s)
    if stated:
        return _best(mixtures[0], ratios, shares[0], scale_s, noise_s, measured[1])
    without = _best(line, ratios, 0.0, scale_s, noise_s, measured[0])
    evidence = max(EVIDENCE, OF_MISFIT * without.deviations)
    bar = without.deviations - evidence * (KEPT / EVIDENCE if before > 0.0 else 1.0)
    found = [
        _best(one, ratios, share, scale_s, noise_s, parts)
        for one, share, parts in zip(mixtures, shares, measured[1:], strict=True)
        if _left_s(one, parts) / noise_s < bar  # usual ratios only add to what times leave
    ]
    bent = [one for one in found if one.parts[TERMS] > 0.0]
    best = min(bent, key=lambda one: one.deviations, default=without)
    if best.deviations >= bar:
        return without
    if at_load is None:
        return best
    alike = [one for one in bent if one.deviations <= best.deviations + EVIDENCE]
    return max(alike, key=lambda one: float(at_load @ one.parts))


def _left_s(squares: Squares, parts: Vector) -> float:
    """Return the weighted squares that these parts leave, in seconds."""
    return squares.seconds - float(squares.products @ parts)


def _noise_s(line: Squares, left_s: float) -> float:
    """Return the squared error of one deviation, in seconds.

    At least that of iterations that vary by `ITERATION_CV`; ALIKE intervals count once.
    """
    mean_s = line.seconds / max(line.iterations, 1.0)
    return ALIKE * max(left_s / max(line.intervals, 1.0), ITERATION_CV**2 * mean_s)


def _prompt_token_s(line: Squares, measured_s: float, ratios: Ratios) -> float:
    """Return b as measured, at least a quarter of the b that times and usual ratios imply.

    The errors of ratios are shares of it: near zero, they would outweigh everything measured.
    """
    usual = np.zeros(TERMS)
    usual[PROMPT] = 1.0
    for term, ratio, _ in ratios.known:
        usual[term] = ratio
    usual_s = float(usual @ line.products) / float(usual @ line.inner @ usual)
    return max(measured_s, _QUARTER * usual_s)


def _best(
    squares: Squares,
    ratios: Ratios,
    share: float,
    scale_s: float,
    noise_s: float,
    measured: Vector,
) -> Estimate:
    """Return the least squares of times and ratios, with no part below zero.

    What is far from its usual ratio weighs by the logarithm, so that there can be two minima: one
    near the usual ratios, one near what was `measured` alone. The deeper one counts.
    """
    known = [*ratios.known]
    if share > 0.0:
        known.append((TERMS, *ratios.experts(share)))
    usual = _minimum(squares, known, share, scale_s, noise_s, None)
    if all(measured[term] <= FAR_OFF * ratio * scale_s for term, ratio, _ in known):
        return usual
    other = _minimum(squares, known, share, scale_s, noise_s, measured)
    return min(usual, other, key=lambda one: one.deviations)


def _minimum(
    squares: Squares,
    known: Sequence[tuple[int, float, float]],
    share: float,
    scale_s: float,
    noise_s: float,
    parts: Vector | None,
) -> Estimate:
    """Return the minimum that is reached from these parts; None: from the usual ratios."""
    before: list[float] = []
    for _ in range(_ROUNDS):
        weights = [
            1.0 if parts is None else _by_logarithm(float(parts[term]) / scale_s / ratio)
            for term, ratio, _ in known
        ]
        if weights == before:  # near the usual ratios, mostly at once
            break
        before, rows = weights, np.zeros((len(known), len(squares.products)))
        for row, times, (term, ratio, error) in zip(rows, weights, known, strict=True):
            weight = times / (error * scale_s)
            row[term], row[PROMPT] = weight, -ratio * weight
        inner = squares.inner + noise_s * rows.T @ rows
        parts = non_negative(inner, squares.products)
    assert parts is not None
    left_s = _left_s(squares, parts)
    return Estimate(
        share=share, parts=parts, deviations=left_s / noise_s, normal=inner, noise_s=noise_s
    )


def _by_logarithm(times: float) -> float:
    """Return the weight of the logarithmic deviation of a part this many times its usual ratio.

    Engines exist that are nothing like the measured ones, so what is far off must not outweigh
    thousands of iterations. Worked: 190 times the usual are 5.2 of its error's units, not 189.
    """
    return math.log(times) / (times - 1.0) if times > _NEAR else 1.0


_ROUNDS = 4
_NEAR = 1.01
_QUARTER = 0.25
