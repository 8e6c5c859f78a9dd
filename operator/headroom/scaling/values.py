"""The words of the decision as frozen values: what a tick knows, what it may do, what it decided.

Units stand in the names (`_s` seconds, `_rps` requests per second); ratios lie in 0..1. *Waiting*
is queued only, *running* is in a batch, *in flight* is both. Counters are cumulative since the
pod's process started.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from headroom.scaling.tuning import Tuning


class PodState(StrEnum):
    """What a pod is worth to the decision."""

    READY = "Ready"
    """Warm and taking requests."""
    WARMING = "Warming"
    """Scheduled and pulling, starting, loading or warming. Credited while on schedule."""
    UNSCHEDULABLE = "Unschedulable"
    """No node has room for it. Never credited, never multiplied."""
    BROKEN = "Broken"
    """Cannot become ready as it is: image, crash loop, warm-up timed out. Never credited."""
    TERMINATING = "Terminating"
    """On its way out; it still occupies its GPUs."""


class Freshness(StrEnum):
    """Absent is not zero, and stale is neither."""

    FRESH = "Fresh"
    STALE = "Stale"
    MISSING = "Missing"


class Routing(StrEnum):
    """How requests reach the replicas; what a replica can carry depends on it."""

    RANDOM = "Random"
    """Each request goes to a replica chosen at random."""
    STICKY = "Sticky"
    """Each keep-alive connection stays with one replica: what a ClusterIP does."""
    ROUND_ROBIN = "RoundRobin"
    LEAST_IN_FLIGHT = "LeastInFlight"
    """Each request goes to the replica with the fewest requests in flight."""
    POWER_OF_TWO = "PowerOfTwo"
    """The less loaded of two replicas chosen at random."""
    CENTRAL = "Central"
    """Requests wait in one queue, and a replica gets one when it has room."""

    @property
    def sees_load(self) -> bool:
        """Whether a slow replica gets fewer requests than a fast one."""
        return self in (Routing.LEAST_IN_FLIGHT, Routing.POWER_OF_TWO, Routing.CENTRAL)


class Direction(StrEnum):
    """Where a decision moves the number of replicas."""

    UP = "Up"
    DOWN = "Down"
    NONE = "None"


class Reason(StrEnum):
    """Why a decision is what it is. Machine-readable API: documented, never renamed."""

    LATENCY_MODEL = "LatencyModel"
    """The tail-latency model needs this many replicas for the arrivals (N_slo)."""
    UTILIZATION_CEILING = "UtilizationCeiling"
    """Fewer would put utilization above the ceiling (N_util)."""
    QUEUE_DEPTH = "QueueDepth"
    """More requests are waiting than the bound per replica allows (N_queue)."""
    BURST = "Burst"
    """A short window shows that the stable one is out of date (N_burst)."""
    MIN_REPLICAS = "MinReplicas"
    """Nothing asks for more than the floor."""
    SCALED_TO_ZERO = "ScaledToZero"
    """minReplicas is 0 and no request came for scaling.scaleToZero.idleTimeout."""
    MAX_REPLICAS = "MaxReplicas"
    """More would be wanted, and the bound forbids it."""
    WITHIN_TARGET = "WithinTarget"
    """What stands is what is wanted."""
    SCALE_UP_STABILIZED = "ScaleUpStabilized"
    """More is wanted, but not yet for the whole scale-up window."""
    SCALE_DOWN_STABILIZED = "ScaleDownStabilized"
    """Less would do now, but not yet for the whole scale-down window."""
    SCALE_DOWN_MARGIN = "ScaleDownMargin"
    """Less would be allowed, but would leave latency or utilization too close to its bound."""
    RATE_LIMITED = "RateLimited"
    """The step was cut to the configured rate."""
    REPLICAS_WARMING = "ReplicasWarming"
    """What is needed is already on its way."""
    CAPACITY_SHORTAGE = "CapacityShortage"
    """Replicas are unschedulable or broken; asking for more would multiply them."""
    YIELDED_TO_PRIORITY = "YieldedToPriority"
    """A service of higher priority gets the last accelerators of the pool."""
    ROLLING_OUT = "RollingOut"
    """A rollout is replacing pods; nothing is removed meanwhile."""
    METRICS_STALE = "MetricsStale"
    """A signal is out of date: nothing is removed."""
    METRICS_MISSING = "MetricsMissing"
    """A signal is not there: what stands is held."""
    COST_UNKNOWN = "CostUnknown"
    """No replica has said or shown yet what a request costs: what stands is held."""
    INSUFFICIENT_HISTORY = "InsufficientHistory"
    """The operator has not watched for a whole scale-down window yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """At most so much change within a period, as in HorizontalPodAutoscaler's behavior.policies."""

    period_s: float
    replicas: int = 0
    percent: int = 0
    """Of the replicas at the period's start. The larger of the two counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the user promises and permits. Immutable; parsed once at the edge."""

    latency_target_s: float
    latency_percentile: float = 0.95
    queue_depth: int | None = None
    """Waiting requests per replica; None takes the largest batch of the model."""
    utilization_ceiling: float = 0.80
    min_replicas: int = 1
    schedule: str = ""
    """Names the schedule that min_replicas come from now; empty: none does."""
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
    """Capacity is increased by this factor: the margin over arrivals grows, the utilization ceiling
    falls. Above 1 while token-latency SLOs need more than the model asks for."""
    priority: int = 0
    """Of several services that want the last accelerators, the highest goes first."""
    warmup_timeout_s: float = 600.0
    """A warming pod that is older than this is not on schedule, whatever was measured before."""
    tuning: Tuning = field(default_factory=Tuning)
    """The constants behind the fields above; a user does not set them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModel:
    """Batch cost t(b) = fixed_s + per_item_s * b, b up to max_batch (affine: Inoue 2021)."""

    fixed_s: float
    per_item_s: float
    max_batch: int
    cv: float = 0.0
    """Coefficient of variation of an execution around its mean."""
    slots: int = 1
    """Executions side by side in one replica."""

    def batch_s(self, size: float) -> float:
        """Seconds that a batch of this size takes."""
        return self.fixed_s + self.per_item_s * size

    @property
    def full_batch_rps(self) -> float:
        """Throughput of one replica in full batches: the denominator of utilization."""
        return self.slots * self.max_batch / self.batch_s(self.max_batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyCounts:
    """A cumulative histogram: counts[i] requests took at most bounds_s[i]; the last is +Inf."""

    bounds_s: tuple[float, ...]
    counts: tuple[float, ...]

    def __post_init__(self) -> None:
        """Raise ValueError unless both have the same length."""
        if len(self.bounds_s) != len(self.counts):
            raise ValueError(
                f"latency counts need one count per bound: {len(self.bounds_s)} bounds, "
                f"{len(self.counts)} counts"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSample:
    """One scrape of one pod: all counters and gauges of one instant."""

    pod: str
    """The pod's UID: a name may come back, a UID does not."""
    time_s: float
    arrivals: float
    """ServiceCounters at the door, before admission."""
    missed: float
    """Refused, expired, failed or abandoned: each counts as +Inf in every percentile."""
    waiting: int
    running: int
    latency: LatencyCounts
    batches: float = 0.0
    batch_items: float = 0.0
    batch_seconds: float = 0.0
    cost: CostModel | None = None
    """What the server itself measured when it warmed up; None where it does not say."""
    max_batch: int | None = None
    """The largest batch that the server forms; None where it says so in `cost`, or not at all."""
    slots: int = 1
    """Executions that the server runs side by side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod of the service as the API server shows it."""

    uid: str
    state: PodState
    created_s: float
    scheduled_s: float | None = None
    """When it got its node: a start is timed from here, not from what it waited before."""
    ready_s: float | None = None
    """When it last became ready, as the kubelet reported it; None if it is not."""
    detail: str = ""
    """Why it is unschedulable or broken, in the cluster's words."""

    @property
    def started_s(self) -> float:
        """When its start began: with its node, or with its creation where that is not known."""
        return self.created_s if self.scheduled_s is None else self.scheduled_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """What a service may have of a pool that has too few accelerators for all."""

    replicas: int
    preempted_by: str
    """Who gets the rest, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayRejections:
    """Requests that gateways rejected, so that no replica has counted them."""

    time_s: float
    requests: float
    """Since some moment; never falls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Everything that a tick knows. Reads have ended when it exists."""

    now_s: float
    current: int
    """Replicas that the workload is asked for now."""
    pods: tuple[Pod, ...] = ()
    samples: tuple[PodSample, ...] = ()
    unlisted_ready: int = 0
    """Ready replicas that the workload reports and the API server's pod list does not include."""
    rejected_at_gateway: GatewayRejections | None = None
    """None: no gateways, or not known yet."""
    rolling: bool = False
    allocation: Allocation | None = None
    """None: nothing is withheld for others."""

    def count(self, state: PodState) -> int:
        """Pods in this state."""
        return sum(1 for pod in self.pods if pod.state is state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One quantity that the decision acts on; `value` is None exactly when it is absent."""

    freshness: Freshness
    value: float | None = None
    age_s: float | None = None

    def __post_init__(self) -> None:
        """Raise ValueError where a value stands for nothing, or nothing for a value."""
        if (self.value is None) != (self.freshness is Freshness.MISSING):
            raise ValueError(f"a signal has a value unless absent: {self.freshness}, {self.value}")

    @property
    def fresh(self) -> bool:
        """Whether scale-down may rely on it."""
        return self.freshness is Freshness.FRESH


MISSING = Signal(freshness=Freshness.MISSING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What the windows say now, over all pods of the service."""

    arrival_rps: Signal = MISSING
    waiting: Signal = MISSING
    standing_queue: Signal = MISSING
    """Waiting throughout the shortest burst window: a queue that the replicas do not work off."""
    in_flight: Signal = MISSING
    latency_s: Signal = MISSING
    """The promised percentile in the stable window, misses as +Inf; absent without traffic."""
    attainment: Signal = MISSING
    """Share of the stable window's requests answered within the target; absent without traffic."""
    coverage: float = 0.0
    """Share of the ready pods that have a fresh sample."""

    @property
    def freshness(self) -> Freshness:
        """The worst of the signals that a removal depends on."""
        order = (Freshness.MISSING, Freshness.STALE, Freshness.FRESH)
        return min((self.arrival_rps.freshness, self.waiting.freshness), key=order.index)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """One rule's answer: how many replicas it wants, not yet bounded."""

    rule: Reason
    replicas: int
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitApplied:
    """One limit that changed the number, and from what to what."""

    limit: Reason
    before: int
    after: int
    detail: str = ""
    """What the limit's name does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterfactual:
    """What the model expects at this many ready replicas and the present arrivals."""

    replicas: int
    latency_s: float
    """The promised percentile; inf where the replicas could not carry the arrivals."""
    utilization: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCounts:
    """Pods by what they are worth, `late` taken out of `warming`."""

    ready: int = 0
    warming: int = 0
    late: int = 0
    unschedulable: int = 0
    broken: int = 0
    terminating: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """How many replicas, and everything that is needed to say why."""

    time_s: float
    current: int
    replicas: int
    direction: Direction
    reason: Reason
    """The rule or limit that binds: what would have to change for the number to change."""
    message: str
    recommendations: tuple[Recommendation, ...] = ()
    limits: tuple[LimitApplied, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences of rules that changed no number."""
    counterfactuals: tuple[Counterfactual, ...] = ()
    signals: Signals = field(default_factory=Signals)
    counts: ReplicaCounts = field(default_factory=ReplicaCounts)
    utilization: float | None = None
    """Arrivals over the ready replicas' full-batch throughput; None while either is unknown."""
    feasible: bool = True
    """False where even an idle replica misses the latency target."""
    floor_latency_s: float | None = None
    """What an idle replica takes: the lowest latency target that can be promised."""
    floor_replicas: int = 1
    """min_replicas, or what a schedule makes of them now."""
    floor_rps: float | None = None
    """Arrivals that min_replicas carry within the target; a rise beyond waits for a cold start."""
    cost: CostModel | None = None
    correction: float = 1.0
    """Measured over modelled latency, as far as it has been learnt."""
    cold_start_s: float | None = None
    """p90 of the measured times from getting a node to ready."""

    @property
    def alone(self) -> int:
        """How many replicas it would be if no other service had priority."""
        if self.replicas == 0:
            return 0
        limits = (limit for limit in self.limits if limit.limit is Reason.YIELDED_TO_PRIORITY)
        return next((limit.before for limit in limits), self.replicas)


def format_seconds(seconds: float) -> str:
    """Return seconds as text for people: 150ms, 2.5s."""
    if math.isinf(seconds):
        return "unbounded"
    return f"{1000 * seconds:.3g}ms" if seconds < 1 else f"{seconds:.3g}s"
