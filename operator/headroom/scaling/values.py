"""The inputs and outputs of the decision as immutable values.

Names carry their unit (`_s` seconds, `_rps` requests per second); ratios are 0..1. *Waiting*
requests are queued, *running* ones are in a batch, *in flight* ones are both together. Counters are
cumulative since the start of the pod's process.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from headroom.scaling.latency_counts import LatencyCounts
from headroom.scaling.replica_defect import LeftOut, Replacement
from headroom.scaling.token_values import (
    GenerationDecision,
    GenerationSample,
    IterationCost,
    TokenTargets,
)
from headroom.scaling.tuning import Component, Tuning


class PodState(StrEnum):
    """The state of a pod, as far as the decision distinguishes it."""

    READY = "Ready"
    """Warm and taking requests."""
    WARMING = "Warming"
    """Scheduled, and pulling, starting, loading or warming up. Counted as capacity while on
    schedule."""
    UNSCHEDULABLE = "Unschedulable"
    """No node has room for it. Never counted as capacity, and no replica is added to replace it."""
    BROKEN = "Broken"
    """Cannot become ready: image pull error, crash loop or warm-up timeout. Never counted as
    capacity."""
    TERMINATING = "Terminating"
    """Shutting down; it still occupies its GPUs."""


class Freshness(StrEnum):
    """Whether a signal is recent, too old, or missing. Missing is not zero."""

    FRESH = "Fresh"
    """Recent enough to remove replicas."""
    STALE = "Stale"
    """Too old to remove replicas."""
    MISSING = "Missing"
    """No value is known."""


class Routing(StrEnum):
    """How requests reach the replicas; the capacity of a replica depends on it."""

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
    ROLLING_OUT = "RollingOut"
    """A rollout is replacing pods; no replica is removed before it ends."""
    METRICS_STALE = "MetricsStale"
    """Metrics are too old; no replica is removed."""
    METRICS_MISSING = "MetricsMissing"
    """Metrics are missing; the replica count is kept."""
    REPLICA_CONTRADICTS = "ReplicaContradicts"
    """The other replicas contradict the metrics of one; no replica is removed."""
    DECISION_FAILED = "DecisionFailed"
    """The decision ended with an exception; no replica is removed."""
    COST_UNKNOWN = "CostUnknown"
    """No replica has reported or shown yet what a request costs; no replica is removed."""
    INSUFFICIENT_HISTORY = "InsufficientHistory"
    """Metrics do not cover a whole scale-down window yet, for example after a restart of the
    operator; no replica is removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """Largest change of replicas within a period, as in HorizontalPodAutoscaler's policies."""

    period_s: float
    replicas: int = 0
    percent: int = 0
    """Of the replicas at the start of the period. The larger of the two limits applies."""


@dataclass(frozen=True, slots=True, kw_only=True)
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
    tick_s: float = 2.0
    stale_after_s: float = 10.0
    absent_after_s: float = 120.0
    routing: Routing = Routing.RANDOM
    capacity_factor: float = 1.0
    """Increases capacity: the margin over arrivals rises, the utilization ceiling falls. Above 1
    while token-latency SLOs need more replicas than the model."""
    priority: int = 0
    """Of several services that need the last accelerators, the highest priority goes first."""
    warmup_timeout_s: float = 600.0
    """A pod that warms up for longer is late, whatever was measured before."""
    replacement_objection: str = ""
    """Why slow or failing replicas are not replaced; empty: they are."""
    rebalancing_objection: str = ""
    """Why replicas are not evicted so that connections are spread; empty: they are."""
    token_targets: TokenTargets | None = None
    """None: the service has no promise on tokens."""
    token_cost: IterationCost | None = None
    """What an iteration costs as far as it is known beforehand; what is measured outweighs it."""
    tuning: Tuning = field(default_factory=Tuning)
    """Constants of the decision; users do not set them."""

    @property
    def rebalances(self) -> bool:
        """Whether connections stay with their replicas, and are spread by evictions."""
        return (
            self.routing is Routing.STICKY
            and not self.rebalancing_objection
            and self.token_targets is None
            and self.tuning.has(Component.REBALANCING)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModel:
    """Batch cost t(b) = fixed_s + per_item_s * b for b up to max_batch (affine: Inoue 2021)."""

    fixed_s: float
    per_item_s: float
    max_batch: int
    cv: float = 0.0
    """Coefficient of variation of an execution around its mean."""
    slots: int = 1
    """Parallel executions in one replica."""

    def batch_s(self, size: float) -> float:
        """Return the seconds that a batch of this size takes."""
        return self.fixed_s + self.per_item_s * size

    @property
    def full_batch_rps(self) -> float:
        """Throughput of one replica with full batches: the denominator of utilization."""
        return self.slots * self.max_batch / self.batch_s(self.max_batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSample:
    """One scrape of one pod: all counters and gauges at one instant."""

    pod: str
    """The pod's UID: names are reused, UIDs are not."""
    time_s: float
    arrivals: float
    """Counted before admission."""
    missed: float
    """Rejected, expired, failed or abandoned requests; each counts as +Inf in every percentile."""
    waiting: int
    running: int
    latency: LatencyCounts
    batches: float = 0.0
    batch_items: float = 0.0
    batch_seconds: float = 0.0
    cost: CostModel | None = None
    """The cost that the server measured at warm-up; None if it reports none."""
    max_batch: int | None = None
    """The largest batch that the server forms; None if `cost` has it, or it is unknown."""
    slots: int = 1
    """Parallel executions of the server."""
    retried: float = 0.0
    """Of the arrivals, those that said that they were retries."""
    generation: GenerationSample | None = None
    """None: the server does not generate tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod of the service, as the API server shows it."""

    uid: str
    state: PodState
    created_s: float
    scheduled_s: float | None = None
    """When it got its node: a cold start is measured from here, without the wait for a node."""
    ready_s: float | None = None
    """When it last became ready, as reported by the kubelet; None if it is not ready."""
    detail: str = ""
    """Why it is unschedulable or broken, as the cluster reports it."""

    @property
    def started_s(self) -> float:
        """When its cold start began: with its node, or with its creation if that is unknown."""
        return self.created_s if self.scheduled_s is None else self.scheduled_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """The accelerators that a service may use of a pool that has too few for all."""

    replicas: int
    preempted_by: str
    """The service that gets the rest, as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayRejections:
    """Requests that gateways rejected, so that no replica has counted them."""

    time_s: float
    requests: float
    """Since some moment; never falls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Everything that one tick knows; complete before the decision starts."""

    now_s: float
    current: int
    """Replicas that the workload requests now."""
    pods: tuple[Pod, ...] = ()
    samples: tuple[PodSample, ...] = ()
    unlisted_ready: int = 0
    """Ready replicas that the workload reports and the API server's pod list does not include."""
    rejected_at_gateway: GatewayRejections | None = None
    """None: no gateways, or not known yet."""
    rolling: bool = False
    allocation: Allocation | None = None
    """None: nothing is withheld for other services."""

    def count(self, state: PodState) -> int:
        """Return the number of pods in this state."""
        return sum(1 for pod in self.pods if pod.state is state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One quantity that the decision depends on; `value` is None exactly if it is missing."""

    freshness: Freshness
    value: float | None = None
    age_s: float | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for a missing signal with a value, and for any other without one."""
        if (self.value is None) != (self.freshness is Freshness.MISSING):
            raise ValueError(
                "a signal must have a value unless it is missing; "
                f"got {self.freshness}, {self.value}"
            )

    @property
    def fresh(self) -> bool:
        """Whether a scale-down may rely on it."""
        return self.freshness is Freshness.FRESH


MISSING = Signal(freshness=Freshness.MISSING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """The signals of all pods of the service, computed from the sliding windows."""

    arrival_rps: Signal = MISSING
    waiting: Signal = MISSING
    standing_queue: Signal = MISSING
    """Requests waiting throughout the shortest burst window: the replicas do not work them off."""
    in_flight: Signal = MISSING
    latency_s: Signal = MISSING
    """The target percentile in the stable window, misses as +Inf; missing without traffic."""
    attainment: Signal = MISSING
    """Share of the stable window's requests answered within the target; missing without traffic."""
    coverage: float = 0.0
    """Share of the ready pods that have a fresh sample."""

    @property
    def freshness(self) -> Freshness:
        """The worst freshness of the signals that a removal depends on."""
        order = (Freshness.MISSING, Freshness.STALE, Freshness.FRESH)
        return min((self.arrival_rps.freshness, self.waiting.freshness), key=order.index)


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
    TARGET_BELOW_IDLE = "TargetBelowIdle"
    """An idle replica takes longer than the target allows."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
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
    left_out: tuple[LeftOut, ...] = ()
    """Ready replicas whose samples contradict those of the others, or end the decision."""

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
