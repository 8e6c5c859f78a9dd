"""The constants of the decision, and which of its components are active.

The defaults, which production uses, were chosen in the simulator over many cells at once; `headroom
simulate --ablate` shows what each component contributes. The queue rule and the correction
contribute little while the model is right; they are there for when it is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

HOUR_S = 3600.0
"""Time for which rates, bursts and flaps are remembered."""
SLACK_S = 60.0
"""In addition to a cold start: replicas needed again within this time were removed too early."""


class Component(StrEnum):
    """A part of the decision that the simulator can leave out."""

    CEILING = "utilization-ceiling"
    LATENCY = "latency-model"
    QUEUE = "queue-depth"
    BACKLOG = "backlog"
    """Replicas for the ready ones that hold a backlog after a surge."""
    BURST = "burst"
    VARIATION = "variation"
    """Learning how much executions vary."""
    CORRECTION = "correction"
    HIDDEN_DEMAND = "hidden-demand"
    """Replicas for everything in flight while saturated replicas hide demand."""
    OBSTACLES = "obstacles"
    """No growth where more replicas have not helped."""
    REBALANCING = "rebalancing"
    """Evicting the most loaded replicas so that kept connections are spread."""
    RETRIES = "retries"
    """The bound on the arrival rate while many requests miss."""
    MARGIN = "margin"
    """The margin that a service learns from its own misses at a steady load."""
    RESERVE = "reserve"
    """Spare replicas for a surge that nothing announces, where replicas start slowly."""
    RISK = "risk"
    """The quantiles and holds that a service learns from all misses of the last hour."""
    REMOVAL_MARGIN = "removal-margin"
    FLAPS = "flap-hold"
    FORECAST = "forecast"
    """Learning from the last hour what follows rates like the present one."""
    PERIODIC_PEAKS = "periodic-peaks"
    """Part of the forecast: peaks at regular times."""
    TREND = "trend"
    """Part of the forecast: a rise without precedent goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """The constants that a sweep over Headroom itself can vary."""

    arrival_margin: float = 1.0
    """Replicas = arrivals x margin / capacity: spare capacity in addition to the forecast."""
    burst_deviations: float = 4.5
    """A short window counts as a burst if it lies this many Poisson deviations above the time
    before it."""
    removal_latency_ratio: float = 0.92
    """After a removal the modelled latency must be below this share of the target."""
    expected_share: float = 0.5
    kept_share: float = 0.5
    """Quantiles of the forecast up to which replicas are added (`expected_share`) and kept
    (`kept_share`)."""
    record_ratio: float = 1.0
    """Bound of analogs that more than double a rate, over the highest rate of the hour."""
    drain_s: float = 180.0
    """A queue above its bound must be worked off within this time, or a cold start if shorter."""
    correction_s: float = 300.0
    """Time constant of the latency correction."""
    without: frozenset[Component] = frozenset()

    def has(self, component: Component) -> bool:
        """Return whether this component is active."""
        return component not in self.without
