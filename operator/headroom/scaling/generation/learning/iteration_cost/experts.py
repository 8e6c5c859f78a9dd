"""The experts of a mixture that an iteration reads: few sequences touch few of them.

n sequences with k of E experts each touch 1 - (1 - k/E)^n of them, a prompt nearly all. So the time
of an iteration bends: steep while sequences are few, flat once all experts are read. Which share
k/E a service has is not stated; those of a grid are tried (`estimate.py`).
"""

from __future__ import annotations

import math

import numpy as np

from headroom.scaling.mathematics.arrays import Vector

SHARES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4)
"""k/E of known models: 8 of 256 (DeepSeek V3), 4 of 128, 8 of 128 (Qwen3), 4 of 32, 2 of 8. The
curves of neighbours hardly differ over the sequences of one load, so a coarse grid suffices."""


def touched(shares: Vector, sequences: Vector, prompt_share: Vector) -> Vector:
    """Return the share of experts read, [intervals, shares].

    `prompt_share` of the iterations compute a prompt, and read all.
    """
    untouched = np.exp(np.log1p(-shares) * sequences[:, np.newaxis])
    read: Vector = 1.0 - (1.0 - prompt_share)[:, np.newaxis] * untouched
    return read


def prompt_iterations(prompts: float) -> float:
    """Return the share of iterations that compute a prompt, where this many fall on each."""
    return -math.expm1(-max(0.0, prompts))


def nearest(share: float) -> float:
    """Return the share of the grid that is most like this one."""
    return min(SHARES, key=lambda one: abs(math.log(max(share, _LEAST) / one)))


_LEAST = 1e-9
