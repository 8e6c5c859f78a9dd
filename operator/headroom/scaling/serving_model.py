"""The interface of a serving model, which batches and text generation implement.

Two models fit it: a replica that forms batches (`latency/tail_latency.py`) and a replica that
generates tokens (`generation/fleet.py`). Ceiling, forecast, holds, margin and risk know no other
difference between them.
"""

from __future__ import annotations

from typing import Protocol


class ReplicaCost(Protocol):
    """Capacity of one replica."""

    @property
    def full_batch_rps(self) -> float:
        """Throughput at full load: the denominator of utilization."""

    @property
    def max_batch(self) -> int:
        """Requests that may wait at one replica, unless the policy says otherwise."""

    @property
    def slots(self) -> int:
        """Parallel executions."""


class ServingModel(Protocol):
    """The target percentile of the latency of a service, given its arrivals and replicas."""

    @property
    def cost(self) -> ReplicaCost:
        """Capacity of one replica."""

    @property
    def idle_s(self) -> float:
        """Latency of an idle replica: no lower target can be met."""

    def latency_s(self, arrival_rps: float, replicas: int) -> float:
        """Return the percentile in seconds when `replicas` share these arrivals; inf if too few."""

    def capacity_rps(self, target_s: float, replicas: int) -> float:
        """Return the highest rate that each of `replicas` carries within the target."""

    def replicas_for(self, arrival_rps: float, target_s: float, margin: float) -> int | None:
        """Return the fewest replicas that meet the target; None if no number does."""
