"""The number of replicas and its explanation, as immutable values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from headroom.scaling.frozen import replace
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.partner import PairDecision
from headroom.scaling.values.replica_defect import LeftOut, Replacement
from headroom.scaling.values.signals import Signals
from headroom.scaling.values.token_decision import GenerationDecision


class Direction(StrEnum):
    """Whether a decision adds or removes replicas."""

    UP = "Up"
    DOWN = "Down"
    NONE = "None"


class Reason(StrEnum):
    """The rule or limit that determines a decision. Users rely on these values."""

    LATENCY_MODEL = "LatencyModel"
    """The tail-latency model needs this many replicas for the arrivals (N_slo)."""
    UTILIZATION_CEILING = "UtilizationCeiling"
    """Fewer replicas would put utilization above the ceiling (N_util)."""
    QUEUE_DEPTH = "QueueDepth"
    """More requests are waiting than the bound per replica allows (N_queue, N_backlog)."""
    HIDDEN_DEMAND = "HiddenDemand"
    """Saturated replicas hide demand: what is in flight needs this many replicas."""
    ERROR_BUDGET = "ErrorBudget"
    """More requests miss than the error budget allows: the learned margin adds replicas."""
    RESERVE = "Reserve"
    """Replicas start too slowly for a surge: spare ones run before it."""
    BURST = "Burst"
    """A short window shows a much higher rate than the stable window (N_burst)."""
    MIN_REPLICAS = "MinReplicas"
    """No rule needs more than minReplicas."""
    SCALED_TO_ZERO = "ScaledToZero"
    """minReplicas is 0 and no request arrived for scaling.scaleToZero.idleTimeout."""
    MAX_REPLICAS = "MaxReplicas"
    """More replicas are needed than maxReplicas allows."""
    WITHIN_TARGET = "WithinTarget"
    """The current replicas are the desired ones."""
    SCALE_UP_STABILIZED = "ScaleUpStabilized"
    """More replicas are needed, but have not been for the whole scale-up window."""
    SCALE_DOWN_STABILIZED = "ScaleDownStabilized"
    """Fewer replicas suffice now, but have not for the whole scale-down window."""
    SCALE_DOWN_MARGIN = "ScaleDownMargin"
    """Fewer replicas suffice, but would bring latency or utilization too close to its bound."""
    RATE_LIMITED = "RateLimited"
    """The configured rate limits the step."""
    REPLICAS_WARMING = "ReplicasWarming"
    """The replicas that are needed are already starting."""
    NO_EFFECT = "NoEffect"
    """More replicas have not helped: see ScalingEffective; no more are requested."""
    CAPACITY_SHORTAGE = "CapacityShortage"
    """Replicas are unschedulable or broken; no more are requested."""
    YIELDED_TO_PRIORITY = "YieldedToPriority"
    """A service of higher priority gets the last accelerators of the pool."""
    HELD_FOR_PARTNER = "HeldForPartner"
    """The other pool of the pair is short of replicas, misses its promise or is not seen, so what
    arrives here is a lower bound; no replica is removed."""
    ROLLING_OUT = "RollingOut"
    """A rollout is replacing pods; no replica is removed before it ends."""
    METRICS_STALE = "MetricsStale"
    """Metrics are too old; no replica is removed."""
    METRICS_MISSING = "MetricsMissing"
    """Metrics are missing; the replica count is kept."""
    REPLICA_CONTRADICTS = "ReplicaContradicts"
    """A replica counts too few requests, or the others contradict its metrics; no
    replica is removed."""
    DECISION_FAILED = "DecisionFailed"
    """The decision raised an exception; no replica is removed."""
    COST_UNKNOWN = "CostUnknown"
    """No replica has reported or shown yet what a request costs; no replica is removed."""
    INSUFFICIENT_HISTORY = "InsufficientHistory"
    """Metrics do not cover a whole scale-down window yet, for example after a restart of the
    operator; no replica is removed."""


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
    """What the name of the limit does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterfactual:
    """What the model expects with this many ready replicas at the present arrival rate."""

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


class DemandKnown(StrEnum):
    """How the counted arrival rate relates to what clients want."""

    EXACT = "Exact"
    """Every request that clients want to send is counted, once."""
    AT_LEAST = "AtLeast"
    """Replicas are saturated and clients wait for them: the count is a lower bound."""
    INCLUDES_RETRIES = "IncludesRetries"
    """Many requests miss, and part of what arrives are further tries: the count is an upper
    bound."""


class Obstacle(StrEnum):
    """What keeps latency above its target and more replicas cannot change."""

    CONNECTIONS_PINNED = "ConnectionsPinned"
    """Connections stay with saturated replicas while other ready ones get hardly any request."""
    DOWNSTREAM_LIMIT = "DownstreamLimit"
    """More replicas were added and together they serve no more than before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What is known about the requests that clients want to send."""

    known: DemandKnown = DemandKnown.EXACT
    rate_rps: float | None = None
    """The rate that the rules use; None while no rate is known."""
    at_most_rps: float | None = None
    """Upper bound of hidden demand: requests in flight over the latency target (Little 1961)."""
    detail: str = ""
    """The evidence as text; empty if the count is exact."""


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
    """What more replicas cannot change; None if nothing of the kind is seen."""
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


def format_seconds(seconds: float) -> str:
    """Return seconds as text for people: 150ms, 2.5s."""
    if math.isinf(seconds):
        return "unbounded"
    return f"{1000 * seconds:.3g}ms" if seconds < 0.9995 else f"{seconds:.3g}s"
