"""Distance of the learned cost from the true one where a replica is full. Pure.

At a light load iterations are nearly all alike, so what a sequence and its context add follows from
usual ratios, whose errors are large. The errors of the least squares say how much of the time of a
request at full load is known.
"""

from __future__ import annotations

import math

import numpy as np

from headroom.scaling.generation.learning.iteration_cost.estimate import Estimate
from headroom.scaling.generation.replica_model.work import context_tokens
from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.values.tokens import RequestShape

SEQUENCES = 64.0
"""Sequences of a full replica: they share the fixed part of an iteration."""
LEAST, MOST = 0.05, 0.5
"""An estimate from a light load is 2 to 7 % too low where its error is hardly any. Beyond the
largest, usual engines are as good a guess."""


def columns_at_load(shape: RequestShape) -> Vector:
    """Return the multiples of a, b, d, c and f in the engine time of a full replica's request."""
    steps = max(1.0, shape.output_tokens) / max(1.0, shape.accepted_per_step)
    shared = steps / SEQUENCES
    found: Vector = np.array(
        [shared, shape.computed_tokens, steps, steps * context_tokens(shape), shared]
    )
    return found


def error_at_load(estimate: Estimate, at_load: Vector) -> float:
    """Return the standard error of the engine time of a request of a full replica, over the time.

    Worked: a thousand iterations of one sequence each, and prompts of which few are seen: a follows
    from the iterations, d and c from usual ratios to b, with errors of 50 and 67 %.
    """
    columns = at_load[: len(estimate.parts)]
    taken_s = float(columns @ estimate.parts)
    try:
        of_normal = np.linalg.solve(estimate.normal, columns)
    except np.linalg.LinAlgError:  # without prompts nothing says what one takes
        return MOST
    variance = estimate.noise_s * float(columns @ of_normal)
    if not 0.0 <= variance < math.inf or not taken_s > 0.0:
        return MOST
    return min(MOST, math.sqrt(variance) / taken_s)
