"""Direction of a decision, and the rule or limit that determines it."""

from __future__ import annotations

from enum import StrEnum


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
