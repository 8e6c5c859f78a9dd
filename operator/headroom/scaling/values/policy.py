"""The targets and limits that the user sets, as immutable values."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from headroom.scaling.values.tokens import IterationCost, TokenTargets
from headroom.scaling.values.tuning import Component, Tuning


class Routing(StrEnum):
    """Routing of requests to the replicas; the capacity of a replica depends on it."""

    RANDOM = "Random"
    """Each request goes to a replica chosen at random."""
    STICKY = "Sticky"
    """Each keep-alive connection stays with one replica, as through a ClusterIP."""
    ROUND_ROBIN = "RoundRobin"
    LEAST_IN_FLIGHT = "LeastInFlight"
    """Each request goes to the replica with the fewest requests in flight."""
    POWER_OF_TWO = "PowerOfTwo"
    """Each request goes to the less loaded of two replicas chosen at random."""
    CENTRAL = "Central"
    """Requests wait in one queue; a replica takes one when it has a free slot."""

    @property
    def sees_load(self) -> bool:
        """Whether a slow replica gets fewer requests than a fast one."""
        return self in (Routing.LEAST_IN_FLIGHT, Routing.POWER_OF_TWO, Routing.CENTRAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """Largest change of replicas within a period, as in HorizontalPodAutoscaler's policies."""

    period_s: float
    replicas: int = 0
    percent: int = 0
    """Percent of the replicas at the start of the period. The larger of the two limits applies."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The targets and limits that the user sets, parsed from the spec."""

    latency_target_s: float
    latency_percentile: float = 0.95
    queue_depth: int | None = None
    """Waiting requests per replica; None uses the largest batch of the model."""
    utilization_ceiling: float = 0.80
    min_replicas: int = 1
    schedule: str = ""
    """Name of the schedule that min_replicas comes from now; empty if none does."""
    max_replicas: int = 20
    scale_up_stabilization_s: float = 0.0
    scale_up_rate: RateLimit | None = None
    scale_down_stabilization_s: float = 90.0
    scale_down_rate: RateLimit | None = None
    stable_window_s: float = 30.0
    burst_windows_s: tuple[float, ...] = (4.0, 8.0, 12.0)
    pace: float = 1.0
    """Length of the windows over the usual one: longer where a replica serves few requests."""
    tick_s: float = 2.0
    stale_after_s: float = 10.0
    absent_after_s: float = 120.0
    routing: Routing = Routing.RANDOM
    capacity_factor: float = 1.0
    """Increases capacity: the margin over arrivals rises, the utilization ceiling falls. Above 1
    while token-latency SLOs need more replicas than the model."""
    priority: int = 0
    """Priority for the last accelerators; the highest goes first."""
    warmup_timeout_s: float = 600.0
    """A pod that warms up for longer is late, whatever was measured before."""
    replacement_objection: str = ""
    """Reason why slow or failing replicas are not replaced; empty: they are."""
    rebalancing_objection: str = ""
    """Reason why replicas are not evicted so that connections are spread; empty: they are."""
    token_targets: TokenTargets | None = None
    """None: the service has no promise on tokens."""
    token_cost: IterationCost | None = None
    """Cost of an iteration as far as it is known beforehand; measured costs outweigh it."""
    tuning: Tuning = field(default_factory=Tuning)
    """Constants of the decision; users do not set them."""

    @property
    def shortest_window_s(self) -> float:
        """The shortest burst window."""
        return min(self.burst_windows_s, default=self.tick_s)

    @property
    def known_after_s(self) -> float:
        """Time to watch before a rate is known: a usual longest burst window, or a request."""
        longest_s = max(self.burst_windows_s, default=self.tick_s) / self.pace
        return max(longest_s, self.shortest_window_s)

    @property
    def rebalances(self) -> bool:
        """Whether connections stay with their replicas, and are spread by evictions."""
        return (
            self.routing is Routing.STICKY
            and not self.rebalancing_objection
            and self.token_targets is None
            and self.tuning.has(Component.REBALANCING)
        )
