"""How far the learned cost may be from the true one where a replica is full. Pure.

At a light load iterations are nearly all alike, so what a sequence and its context add follows from
usual ratios, whose errors are large. The errors of the least squares say how much of the time of a
request at full load is known.
"""

from __future__ import annotations

import math

import numpy as np

from headroom.scaling.generation.learning.estimate import Estimate
from headroom.scaling.generation.learning.ratios import Ratios
from headroom.scaling.generation.replica_model.work import work_of
from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.values.tokens import RequestShape

SEQUENCES = 64.0
"""Of a full replica: they share the fixed part of an iteration."""
LEAST, MOST = 0.05, 0.5
"""An estimate from a light load is 2 to 7 % too low where its error is hardly any. Beyond the
largest, usual engines are as good a guess."""


def slower_at_load(one: Estimate, other: Estimate, shape: RequestShape, ratios: Ratios) -> Estimate:
    """Return the one by which a full replica takes longer for a request; the first of equal ones.

    Few sequences show neither that iterations bend nor that they do not: chance gives a dense
    engine experts, by which it would carry 2.5 times as much, and hides those of a mixture.
    """
    return max((one, other), key=lambda each: float(_columns(each, shape, ratios) @ each.parts))


def error_at_load(estimate: Estimate, shape: RequestShape, ratios: Ratios) -> float:
    """Return the standard error of the engine time of a request of a full replica, over the time.

    Worked: a thousand iterations of one sequence each, and prompts of which few are seen: a follows
    from the iterations, d and c from usual ratios to b, with errors of 50 and 67 %.
    """
    columns = _columns(estimate, shape, ratios)
    taken_s = float(columns @ estimate.parts)
    try:
        of_normal = np.linalg.solve(estimate.normal, columns)
    except np.linalg.LinAlgError:  # without prompts nothing says what one takes
        return MOST
    variance = estimate.noise_s * float(columns @ of_normal)
    if not 0.0 <= variance < math.inf or not taken_s > 0.0:
        return MOST
    return min(MOST, math.sqrt(variance) / taken_s)


def _columns(estimate: Estimate, shape: RequestShape, ratios: Ratios) -> Vector:
    """Return what a, b, d, c and f are multiplied by in the engine time of a request."""
    work = work_of(estimate.cost(ratios), shape)
    shared = work.steps / SEQUENCES
    steps = work.steps, work.steps * work.context_tokens
    columns: Vector = np.array([shared, work.prompt_tokens, *steps, shared])
    return columns[: len(estimate.parts)]
