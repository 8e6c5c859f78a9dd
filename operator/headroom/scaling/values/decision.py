"""The number of replicas and its explanation, as immutable values."""

from __future__ import annotations

from dataclasses import dataclass, field

from headroom.scaling.frozen import replace
from headroom.scaling.values.decision_reason import Direction, Reason
from headroom.scaling.values.demand import Demand, Obstacle
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.partner import PairDecision
from headroom.scaling.values.replica_defect import LeftOut, Replacement
from headroom.scaling.values.signals import Signals
from headroom.scaling.values.token_decision import GenerationDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The replicas that one rule needs, before limits."""

    rule: Reason
    replicas: int
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitApplied:
    """One limit that changed the number of replicas, and how."""

    limit: Reason
    before: int
    after: int
    detail: str = ""
    """Text of what the name of the limit does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterfactual:
    """Expectation of the model with this many ready replicas at the present arrival rate."""

    replicas: int
    latency_s: float
    """The target percentile; inf if the replicas cannot carry the arrivals."""
    utilization: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCounts:
    """Pods by state, with `late` ones not counted as `warming`."""

    ready: int = 0
    warming: int = 0
    late: int = 0
    unschedulable: int = 0
    broken: int = 0
    terminating: int = 0


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The number of replicas, and everything needed to explain it."""

    time_s: float
    current: int
    replicas: int
    direction: Direction
    reason: Reason
    """The rule or limit that binds: the number changes only if it does."""
    message: str
    recommendations: tuple[Recommendation, ...] = ()
    limits: tuple[LimitApplied, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences of rules that changed no number."""
    counterfactuals: tuple[Counterfactual, ...] = ()
    signals: Signals = field(default_factory=Signals)
    counts: ReplicaCounts = field(default_factory=ReplicaCounts)
    utilization: float | None = None
    """Arrivals over the throughput of the ready replicas with full batches; None while unknown."""
    feasible: bool = True
    """False if even an idle replica misses the latency target."""
    floor_latency_s: float | None = None
    """Latency of an idle replica: no lower target can be met."""
    floor_replicas: int = 1
    """min_replicas, or what a schedule sets them to now."""
    floor_rps: float | None = None
    """Arrivals that min_replicas carry within the target; more must wait for a cold start."""
    cost: CostModel | None = None
    correction: float = 1.0
    """The learned factor of measured over modelled latency."""
    cold_start_s: float | None = None
    """p90 of the measured times from node assignment to ready."""
    demand: Demand = field(default_factory=Demand)
    obstacle: Obstacle | None = None
    """Obstacle that more replicas cannot remove; None if none is seen."""
    obstacle_detail: str = ""
    margin: float = 1.0
    """The learned factor on the replicas that carry the arrivals: what bursts need (`promise/`)."""
    late_share: float | None = None
    """Share of the last hour's requests that missed the target; None before any ended."""
    replacement: Replacement | None = None
    """The replica that is slow or fails, the worst if there are several; None if none is."""
    generation: GenerationDecision | None = None
    """None: the service does not generate tokens, or has no promise on them."""
    pair: PairDecision | None = None
    """None: the service is no pool of a pair."""
    left_out: tuple[LeftOut, ...] = ()
    """Ready replicas whose samples contradict those of the others, stay the same although requests
    are in flight, or end the decision."""

    def showing(self, shown: Replacement) -> Decision:
        """Return the decision with a replica that is replaced, or that should be."""
        note = f"one replica {shown.detail}: {shown.action}"
        notes, message = (*self.notes, note), f"{self.message}; {note}"
        return replace(self, replacement=shown, notes=notes, message=message)

    @property
    def strongest(self) -> Recommendation | None:
        """The rule that recommends the most replicas."""
        return max(self.recommendations, key=lambda rule: rule.replicas, default=None)

    @property
    def alone(self) -> int:
        """The number of replicas without the competition of other services."""
        if self.replicas == 0:
            return 0
        limits = (limit for limit in self.limits if limit.limit is Reason.YIELDED_TO_PRIORITY)
        return next((limit.before for limit in limits), self.replicas)
