"""Estimate of the demand behind the counted arrivals, at one tick."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.scaling.values.decision import Recommendation
from headroom.scaling.values.demand import Demand
from headroom.scaling.values.signals import Signals


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandEstimate:
    """Estimated demand of a tick, and the recommendation from it."""

    demand: Demand
    signals: Signals
    """With the arrival rate that rules may use."""
    at_most_rps: float | None = None
    """Bound on every rate while retries inflate the count."""
    recommendation: Recommendation | None = None
    queue_bound: float = 0.0
    """Waiting requests that are normal at the ready replicas."""
