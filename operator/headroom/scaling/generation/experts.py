"""Recognizes a mixture of experts by its iterations: few sequences read few of the experts.

n sequences with k of E experts each touch 1 - (1 - k/E)^n of them, a prompt nearly all. So the time
of an iteration bends: steep while sequences are few, flat once all experts are read. A straight
line through what a quiet service shows is 30 to 50 % low between, where memory fills. The share k/E
is the one of the grid that explains the measured iterations best, if clearly better than a line.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
SHARES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4)
"""k/E of known models: 8 of 256 (DeepSeek V3), 4 of 128, 8 of 128 (Qwen3), 4 of 32, 2 of 8."""
BETTER = 0.7
"""The squared errors must fall to this share of those without experts."""
LEAST_ERROR = 0.01
"""Mean error of a line that leaves nothing to explain."""
LARGEST_RATIO = 20.0
LEAST_BINS = 3


class Experts(NamedTuple):
    """The expert term of an iteration's cost; none by default."""

    per_fixed: float = 0.0
    """f / a."""
    share: float = 0.0
    """k / E."""


NO_EXPERTS = Experts()


def touched(share: float, sequences: Vector, prompt_share: Vector) -> Vector:
    """Return the share of experts read, where so many of the iterations compute a prompt."""
    without = (1.0 - share) ** sequences
    found: Vector = prompt_share + (1.0 - prompt_share) * (1.0 - without)
    return found


def prompt_iterations(prompts: float) -> float:
    """Return the share of iterations that compute a prompt, where so many fall on each."""
    return -math.expm1(-max(0.0, prompts))


def column(share: float, inner: Vector, means: Vector) -> Vector:
    """Return the column of experts read as one of (1, prompts, sequences), [bins, 3].

    Within each bin it is taken as a straight line through the means.
    """
    sequences, prompt_share = means[:, 0], means[:, 1]
    untouched = (1.0 - share) ** sequences
    by_prompts = untouched * prompt_share
    by_sequences = -math.log1p(-share) * (1.0 - prompt_share) * untouched * sequences
    constant = 1.0 - (1.0 - prompt_share) * untouched - by_prompts - by_sequences
    level = inner[:, 0, 0] / np.maximum(inner[:, 0, 1:].T, _LEAST_S)
    per_prompt = np.where(inner[:, 0, 1] > 0.0, by_prompts * level[0], 0.0)
    per_sequence = np.where(inner[:, 0, 2] > 0.0, by_sequences * level[1], 0.0)
    return np.column_stack((constant, per_prompt, per_sequence))


def recognized(inner: Vector, right: Vector, weights: Vector, means: Vector) -> Experts:
    """Return the experts that explain the iterations; none unless clearly better than a line.

    Of each bin: X'X [bins, 3, 3] and X'y [bins, 3] of (1, prompts, sequences), its iterations, and
    the means of sequences and of iterations with prompts [bins, 2].
    """
    total = float(weights.sum())
    if len(weights) < LEAST_BINS:
        return NO_EXPERTS
    plain_inner, plain_right = inner.sum(axis=0), right.sum(axis=0)
    plain = total - float(plain_right @ non_negative(plain_inner, plain_right))
    if plain < LEAST_ERROR**2 * total:
        return NO_EXPERTS
    best, lowest = NO_EXPERTS, BETTER * plain
    for share in SHARES:
        read = column(share, inner, means)
        by_bin = np.einsum("bi,bij->bj", read, inner)
        whole, sums = np.empty((4, 4)), np.empty(4)
        whole[:3, :3], sums[:3] = plain_inner, plain_right
        whole[:3, 3] = whole[3, :3] = by_bin.sum(axis=0)
        whole[3, 3] = (by_bin * read).sum()
        sums[3] = (read * right).sum()
        parts = non_negative(whole, sums)
        error = total - float(sums @ parts)
        if error < lowest and parts[3] > 0.0:
            ratio = min(LARGEST_RATIO, float(parts[3]) / max(float(parts[0]), _LEAST_S))
            best, lowest = Experts(per_fixed=ratio, share=share), error
    return best


_LEAST_S = 1e-9


def non_negative(inner: Vector, right: Vector) -> Vector:
    """Return the least squares with no part below zero: of all subsets of parts the best."""
    count = len(right)
    best, lowest = np.zeros(count), 0.0
    for size in range(count, 0, -1):
        for chosen in combinations(range(count), size):
            places = list(chosen)
            try:
                found = np.linalg.solve(inner[np.ix_(places, places)], right[places])
            except np.linalg.LinAlgError:
                continue
            error = -float(right[places] @ found)
            if (found >= 0.0).all() and error < lowest:
                best, lowest = np.zeros(count), error
                best[places] = found
        if size == count and lowest < 0.0:
            break
    return best
