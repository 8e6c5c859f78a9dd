"""The facts about a workload that no autoscaler sees, and the replicas with which a run begins."""

from __future__ import annotations

import math

import numpy as np

from headroom.simulator.autoscaler import GroundTruth
from headroom.simulator.capacity import capacity_rps
from headroom.simulator.scenario import Workload

_WINDOW_S = 30
"""Initial replicas are sized for the busiest such window before new ones can be ready."""


def truth_of(workload: Workload, seed: int) -> GroundTruth:
    """Count arrivals per second, and measure the plant's capacity at its mean size."""
    spec, duration_s = workload.spec, workload.arrivals.duration_s
    counts = np.zeros(max(1, math.ceil(duration_s)))
    for times_s in workload.arrivals.chunks(seed):
        counts += np.bincount(times_s.astype(np.int64), minlength=len(counts))
    mean_rps = float(counts.sum()) / duration_s
    replicas = max(1, round(mean_rps / (0.65 * spec.server.full_rps)))
    return GroundTruth(
        spec=spec, arrivals_per_s=counts, capacity_rps=capacity_rps(spec, min(replicas, 40))
    )


def initial_replicas(truth: GroundTruth) -> int:
    """Return the initial replicas: enough for the first arrivals below capacity and ceiling."""
    spec, policy = truth.spec, truth.spec.policy
    if spec.initial_replicas is not None:
        return max(policy.min_replicas, min(policy.max_replicas, spec.initial_replicas))
    first_s = int(spec.cold_start.median_s) + 60
    counts = truth.arrivals_per_s[:first_s]
    windows = np.convolve(counts, np.ones(min(_WINDOW_S, len(counts))), mode="valid")
    first_rps = float(windows.max()) / min(_WINDOW_S, len(counts))
    each_rps = min(truth.capacity_rps, policy.utilization_ceiling * spec.server.full_rps)
    needed = math.ceil(first_rps / each_rps) if each_rps > 0 else policy.max_replicas
    return max(policy.min_replicas, min(policy.max_replicas, needed))
