"""Latency by utilization: it grows without bound as utilization approaches 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroom.planner.demand import Service
from headroom.planner.errors import require
from headroom.planner.replicas import PERCENTILES

Series = NDArray[np.float64]

HIGHEST = 0.98


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilizationCurve:
    """Latency percentiles of a number of replicas at rising arrival rates."""

    replicas: int
    utilization: Series
    """[points], from near 0."""
    arrival_rps: Series
    """[points]"""
    latency_s: Series
    """[points, PERCENTILES]"""
    slo_latency_s: Series
    """The percentile of the SLO, [points]."""


def utilization_curve(service: Service, replicas: int, points: int = 49) -> UtilizationCurve:
    """Compute the curve from nearly no load to nearly full throughput."""
    require(replicas >= 1, "replicas must be at least 1", replicas, "Give the replicas")
    require(points >= 2, "a curve must have at least 2 points", points, "Give more")
    utilization = np.linspace(HIGHEST / points, HIGHEST, points)
    arrival_rps = utilization * replicas * service.cost.full_batch_rps

    def along(percentile: float) -> list[float]:
        tail = service.tail(percentile)
        return [tail.latency_s(float(rate), replicas) for rate in arrival_rps]

    return UtilizationCurve(
        replicas=replicas,
        utilization=utilization,
        arrival_rps=arrival_rps,
        latency_s=np.array([along(p) for p in PERCENTILES]).T,
        slo_latency_s=np.array(along(service.percentile)),
    )
