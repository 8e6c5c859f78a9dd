"""The demo's objects as read from the API server, as frozen values.

Only what table, report and checks need. What is not there stays None: it is not zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headroom.api.service_status.demand_status import DemandStatus
from headroom.api.service_status.generation_status import GenerationStatus
from headroom.resources.names import SCALER_FIELD_MANAGER
from headroom.scaling.values.demand import DemandKnown
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.tokens import TokenTargets


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterfactual:
    """The model's forecast for some number of replicas."""

    replicas: int
    latency_s: float
    utilization: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionView:
    """A decision as the status shows it."""

    replicas: int
    current: int
    direction: str
    reason: str
    message: str
    time_s: float
    counterfactuals: tuple[Counterfactual, ...] = ()

    @property
    def moves(self) -> bool:
        """Return whether it asks for another number of replicas."""
        return self.direction in ("Up", "Down")

    @property
    def because(self) -> str:
        """Return why, without the numbers of replicas that the message begins with."""
        return self.message.partition("; ")[2] or self.message

    @property
    def projected(self) -> Counterfactual | None:
        """Return the model's forecast for the desired replicas."""
        return next((c for c in self.counterfactuals if c.replicas == self.replicas), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceView:
    """An InferenceService."""

    target_s: float
    percentile: int
    utilization_ceiling: float
    queue_depth: int | None
    min_replicas: int
    max_replicas: int
    ready: int
    warming: int
    unschedulable: int
    broken: int
    decision: DecisionView | None
    cost: CostModel | None
    demand: DemandStatus | None
    generation: GenerationStatus | None
    """None for a service without promises on tokens."""
    tokens: TokenTargets
    conditions: Mapping[str, str]
    """Status by type."""
    messages: Mapping[str, str]
    """Reason and message by type."""

    @property
    def demand_is_bound(self) -> bool:
        """Return whether arrivals are only a lower or an upper bound of the demand."""
        return self.demand is not None and self.demand.known != DemandKnown.EXACT

    def is_true(self, condition: str) -> bool:
        """Return whether the condition is there and True."""
        return self.conditions.get(condition) == "True"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadView:
    """The Deployment's replicas, and who wrote them last."""

    replicas: int
    writers: frozenset[str]
    """Field managers that own spec.replicas."""

    @property
    def written_by_operator(self) -> bool:
        """Return whether the operator's scaler is the only owner of the number."""
        return self.writers == {SCALER_FIELD_MANAGER}


@dataclass(frozen=True, slots=True, kw_only=True)
class PodView:
    """A pod of the service."""

    uid: str
    name: str
    created_s: float
    scheduled: bool
    ready_s: float | None
    """Time when it became ready; None while it is not."""
    leaving: bool
    finished: bool
    gpus: int

    @property
    def holds_gpus(self) -> bool:
        """Return whether its GPUs are taken: from its creation to its containers' end."""
        return self.gpus > 0 and not self.finished
