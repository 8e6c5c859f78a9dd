"""Corrects the predicted tails of latency with measured ones."""

from __future__ import annotations

import math
from collections.abc import Mapping

from headroom.scaling.generation.promises.token_promises import Measured, PromiseWindow, nearest_s
from headroom.scaling.generation.replica_model.replica import GeneratingReplica, TailFactors
from headroom.scaling.values.tokens import Binding

FACTOR_S = 300.0
FULL_WEIGHT_REQUESTS = 200.0
SMALLEST, LARGEST = 0.6, 4.0


def corrected(
    factors: TailFactors,
    window: PromiseWindow,
    replica: GeneratingReplica,
    measured: Mapping[Binding, Measured],
    rate_rps: float,
    replicas: int,
    elapsed_s: float,
) -> TailFactors:
    """Return the factors after a tick with these measured percentiles.

    `rate_rps` is the rate of arrivals at all replicas together.
    """
    grids = {
        Binding.TIME_TO_FIRST_TOKEN: (window.grid.first_token, factors.first_token),
        Binding.TIME_PER_OUTPUT_TOKEN: (window.grid.output_token, factors.output_token),
    }
    counts = window.counts()
    moved: dict[Binding, float] = {}
    for binding, (bounds_s, factor) in grids.items():
        one = measured.get(binding)
        if one is None or one.value_s is None or binding not in counts:
            continue
        expected_s = replica.percentile_s(
            binding, one.target.percentile, rate_rps / replicas, replicas
        )
        if not 0.0 < expected_s < math.inf:
            continue
        found_s = nearest_s(bounds_s, counts[binding], one.target.percentile, expected_s)
        ratio = min(LARGEST, max(SMALLEST, found_s / expected_s * factor)) / factor
        weight = min(1.0, one.requests / FULL_WEIGHT_REQUESTS)
        gain = -math.expm1(-elapsed_s * weight / FACTOR_S)
        moved[binding] = factor * ratio**gain
    return TailFactors(
        first_token=moved.get(Binding.TIME_TO_FIRST_TOKEN, factors.first_token),
        output_token=moved.get(Binding.TIME_PER_OUTPUT_TOKEN, factors.output_token),
    )
