"""The constants of the decision, and which of its elements act. Production takes the defaults.

Each default was chosen in the simulator over many cells at once; `headroom simulate --ablate` shows
what each element earns. Queue and correction earn little while the model is right: they are there
for when it is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

HOUR_S = 3600.0
"""How long rates, bursts and flaps are remembered."""
SLACK_S = 60.0
"""Beyond a cold start: replicas needed again within this time were removed too early."""


class Component(StrEnum):
    """A step of the decision that can be left out in the simulator."""

    CEILING = "utilization-ceiling"
    LATENCY = "latency-model"
    QUEUE = "queue-depth"
    BACKLOG = "backlog"
    """Room for replicas that a surge has left a queue with."""
    BURST = "burst"
    VARIATION = "variation"
    """Learning how much executions vary."""
    CORRECTION = "correction"
    REMOVAL_MARGIN = "removal-margin"
    FLAPS = "flap-hold"
    FORECAST = "forecast"
    """What followed before when the load was as it is now."""
    PERIODIC_PEAKS = "periodic-peaks"
    """Of the forecast: what comes at regular times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What a sweep of Headroom itself may walk."""

    arrival_margin: float = 1.0
    """Replicas = arrivals x margin / capacity: room beyond what the forecast asks for."""
    burst_deviations: float = 4.5
    """A short window counts when it lies this many Poisson deviations above what preceded it."""
    removal_latency_ratio: float = 0.92
    """A removal must leave the modelled latency this far inside."""
    expected_share: float = 0.6
    kept_share: float = 0.65
    """Replicas are added, and kept, for what so much of what followed before does not exceed."""
    drain_s: float = 180.0
    """A queue that stands beyond its bound is to be worked off within this time."""
    correction_s: float = 300.0
    """Time constant of the correction."""
    without: frozenset[Component] = frozenset()

    def has(self, component: Component) -> bool:
        """Whether this element acts."""
        return component not in self.without
