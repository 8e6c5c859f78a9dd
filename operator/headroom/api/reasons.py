"""Reasons: one name for each trouble, wherever it is reported.

Conditions, events, findings of `headroom doctor` and states of the console take their reasons from
this enumeration. The reasons of decisions (`Reason` in `headroom.scaling.values.decision_reason`)
name rules and limits; where both name the same trouble, such as MetricsMissing, they spell it
alike.

| trouble | reason |
|---|---|
| two autoscalers scale one workload | AutoscalerConflict |
| two InferenceServices scale one workload | TargetAlreadyManaged |
| another client overwrites the replicas | ReplicasOverwritten |
| another client keeps overwriting them | ReplicasRepeatedlyOverwritten |
| the API server rejects the number of replicas | ScaleFailed |
| the API server rejects pods (quota, admission) | PodCreationForbidden |
| more replicas are needed than maxReplicas | MaxReplicas |
| the target is shorter than one request takes | SLOInfeasible |
| the percentile exceeds its target | AboveTarget |
| clients wait for saturated replicas, so arrivals are a lower bound | HiddenDemand |
| a part of the arrivals are retries | RetriesCounted |
| connections stay with saturated replicas | ConnectionsPinned |
| more replicas serve no more requests | DownstreamLimit |
| a metric is missing, or too old | MetricsMissing, MetricsStale |
| replicas have no node, or cannot start | ReplicasUnschedulable, ReplicasBroken |

An event about a condition carries the reason of the condition; so does a finding of the doctor. A
state of `headroom get` and the console is the reason itself, or a group of reasons: Blocked (a user
must act on a rejected spec or write), Down (no replica serves and none starts), Broken, NoCapacity
and NoMetrics.
"""

from __future__ import annotations

from enum import StrEnum


class StatusReason(StrEnum):
    """Reason for the status of a condition, for an event, or for a finding of the doctor."""

    PENDING = "Pending"
    """Any condition: not evaluated yet."""
    EVALUATION_FAILED = "EvaluationFailed"
    """ScalingActive: the last evaluation failed; replicas are kept until one succeeds."""
    INVALID_SPEC = "InvalidSpec"
    """Ready, ScalingActive, AbleToScale: the spec breaks a rule; nothing is changed until it is
    corrected. Where only its Deployment is rejected, and an earlier one exists, that one is
    scaled."""

    SERVING = "Serving"
    """Ready: at least minReplicas are warm."""
    SCALED_TO_ZERO = "ScaledToZero"
    """Ready, ScalingActive, MetricsAvailable, SLOMet, DemandVisible: no replica is needed; an
    activator holds the first request, which starts one, until it is warm."""
    WARMING_UP = "WarmingUp"
    """Ready: fewer than minReplicas are warm, and more are starting."""
    NO_READY_REPLICAS = "NoReadyReplicas"
    """Ready, ScalingActive, MetricsAvailable, SLOMet, DemandVisible, ScalingEffective,
    ReplicasHealthy: no replica takes requests."""
    REPLICAS_BROKEN = "ReplicasBroken"
    """Ready, CapacityAvailable: replicas cannot become ready: image pull error, crash loop or
    warm-up timeout."""
    MODEL_UNAVAILABLE = "ModelUnavailable"
    """Ready, CapacityAvailable: the files of model.uri could not be fetched, or their digest
    differs."""
    REPLICAS_UNSCHEDULABLE = "ReplicasUnschedulable"
    """Ready, CapacityAvailable: no node has room for replicas."""
    POD_CREATION_FORBIDDEN = "PodCreationForbidden"
    """Ready, CapacityAvailable: a quota or an admission policy rejects the pods."""
    TARGET_NOT_FOUND = "TargetNotFound"
    """Ready, ScalingActive, AbleToScale: the workload named by targetRef does not exist."""
    TARGET_FORBIDDEN = "TargetForbidden"
    """Ready, ScalingActive, AbleToScale: the operator may not read the workload named by targetRef.
    """
    TARGET_NOT_SCALABLE = "TargetNotScalable"
    """Ready, ScalingActive, AbleToScale: the workload named by targetRef has no scale subresource,
    or the subresource has no selector."""
    NAMESPACE_TERMINATING = "NamespaceTerminating"
    """Ready: the namespace is being deleted and accepts no new objects."""
    APPLY_FAILED = "ApplyFailed"
    """Ready: the API server rejected a child object."""
    DEPLOYMENT_REPEATEDLY_OVERWRITTEN = "DeploymentRepeatedlyOverwritten"
    """Ready: another client keeps overwriting the Deployment; it is not repaired for a while."""

    AUTO = "Auto"
    """ScalingActive: decisions are made and written."""
    RECOMMEND_ONLY = "RecommendOnly"
    """ScalingActive: decisions are made and not written, because scaling.mode is Recommend."""
    EXTERNALLY_SCALED = "ExternallyScaled"
    """ScalingActive: the workload follows spec.replicas, because scaling.mode is External;
    decisions are advice."""
    DELETING = "Deleting"
    """ScalingActive: the InferenceService is being deleted, and a finalizer delays it; replicas are
    kept."""
    TARGET_ALREADY_MANAGED = "TargetAlreadyManaged"
    """ScalingActive, AbleToScale: another InferenceService scales the same workload."""
    AUTOSCALER_CONFLICT = "AutoscalerConflict"
    """ScalingActive, AbleToScale: a HorizontalPodAutoscaler scales the same workload."""
    SCALING_DISABLED = "ScalingDisabled"
    """ScalingActive, AbleToScale: another client scaled the workload to zero, which disables
    scaling until it has a replica again."""
    REPLICAS_REPEATEDLY_OVERWRITTEN = "ReplicasRepeatedlyOverwritten"
    """ScalingActive, AbleToScale: another client keeps overwriting the replicas; none are written
    for a while."""
    METRICS_FRESH = "MetricsFresh"
    """MetricsAvailable: every metric is recent."""
    METRICS_STALE = "MetricsStale"
    """MetricsAvailable, SLOMet, ReplicasHealthy: a metric is too old; no replica is removed."""
    COLLECTING_METRICS = "CollectingMetrics"
    """MetricsAvailable, ScalingActive, SLOMet, DemandVisible, ScalingEffective, ReplicasHealthy:
    replicas answer, but the history is too short to compute a rate; after a start of the operator
    or of the first replica."""
    METRICS_MISSING = "MetricsMissing"
    """MetricsAvailable, ScalingActive, SLOMet, DemandVisible, ScalingEffective, ReplicasHealthy: a
    metric is missing; replicas are kept."""

    SCALED = "Scaled"
    """AbleToScale: the API server accepted the last write of replicas."""
    REPLICAS_OVERWRITTEN = "ReplicasOverwritten"
    """AbleToScale: another client overwrote the replicas, and its number is kept."""
    WORKLOAD_PAUSED = "WorkloadPaused"
    """AbleToScale: the workload is paused; changes of its template do not reach its pods."""
    ROLLING_OUT = "RollingOut"
    """AbleToScale: a rollout is replacing pods; none is removed until it ends."""
    NOTHING_TO_SCALE = "NothingToScale"
    """AbleToScale: the workload already has the desired number of replicas."""
    SCALE_FAILED = "ScaleFailed"
    """AbleToScale: the API server rejected the number of replicas."""

    WITHIN_BOUNDS = "WithinBounds"
    """ScalingLimited: no limit reduces the desired replicas."""
    MAX_REPLICAS = "MaxReplicas"
    """ScalingLimited: more than maxReplicas are needed."""
    OPERATOR_LIMIT = "OperatorLimit"
    """ScalingLimited, Ready, ScalingActive: the operator's settings allow no more replicas of a
    service, or no more accelerators in total."""
    RATE_LIMITED = "RateLimited"
    """ScalingLimited: scaleUp.rate or scaleDown.rate reduced the step."""
    CAPACITY_SHORTAGE = "CapacityShortage"
    """ScalingLimited: earlier replicas are unschedulable or broken; no more are requested."""
    YIELDED_TO_PRIORITY = "YieldedToPriority"
    """ScalingLimited: a service with a higher scaling.priority gets the last accelerators."""

    WITHIN_TARGET = "WithinTarget"
    """SLOMet: the percentile is below its target."""
    NO_TRAFFIC = "NoTraffic"
    """SLOMet: no request completed in the stable window, so there is no latency."""
    CLASS_NOT_MEASURED = "ClassNotMeasured"
    """SLOMet: the server does not count per class, so promises of classes are not measured."""
    LATENCY_NOT_MEASURED = "LatencyNotMeasured"
    """SLOMet: the server has no latency histogram, or none that shows whether the target is met."""
    ABOVE_TARGET = "AboveTarget"
    """SLOMet: the percentile exceeds its target."""

    FEASIBLE = "Feasible"
    """SLOFeasible: an idle replica meets the target."""
    SLO_INFEASIBLE = "SLOInfeasible"
    """SLOFeasible, ScalingEffective: even an idle replica exceeds the target; more replicas cannot
    help."""
    COST_UNKNOWN = "CostUnknown"
    """SLOFeasible: the cost of a request is not known yet."""
    BATCH_SIZE_EXCEEDED = "BatchSizeExceeded"
    """SLOFeasible: the server forms larger batches than runtime.maxBatchSize states, so a replica
    can take more than the decision assumes."""

    DEMAND_COUNTED = "DemandCounted"
    """DemandVisible: every request that clients want to send is counted, once."""
    HIDDEN_DEMAND = "HiddenDemand"
    """DemandVisible: clients wait for saturated replicas, so arrivals are a lower bound."""
    RETRIES_COUNTED = "RetriesCounted"
    """DemandVisible: many requests miss, and a part of the arrivals are retries, so arrivals
    are an upper bound."""

    NO_OBSTACLE = "NoObstacle"
    """ScalingEffective: nothing was found that would make more replicas useless."""
    CONNECTIONS_PINNED = "ConnectionsPinned"
    """ScalingEffective: connections stay with saturated replicas, and other ready replicas get
    hardly any request. The same shows where a router chooses replicas by cached prefixes."""
    DOWNSTREAM_LIMIT = "DownstreamLimit"
    """ScalingEffective: replicas were added, and together they serve no more than before."""

    ALL_REPLICAS_SCHEDULED = "AllReplicasScheduled"
    """CapacityAvailable: every replica has a node, and none is broken."""

    REPLICAS_ALIKE = "ReplicasAlike"
    """ReplicasHealthy: no ready replica is far slower than the others or fails."""
    REPLICA_SLOW = "ReplicaSlow"
    """ReplicasHealthy: a ready replica takes at least twice as long as the others for the same
    batches, and its requests are late."""
    REPLICA_FAILING = "ReplicaFailing"
    """ReplicasHealthy: a ready replica takes requests and answers none, while the others answer
    theirs."""

    REPLICA_IMPLAUSIBLE = "ReplicaImplausible"
    """ReplicasHealthy: the metrics of a ready replica contradict those of the others, or end the
    decision with an exception; they are left out, and no replica is removed."""

    DIRECT_TO_PODS = "DirectToPods"
    """RoutingReady: clients connect to the replicas, because routing.mode is Service."""
    VIA_GATEWAY = "ViaGateway"
    """RoutingReady: requests pass through a gateway."""
    NO_GATEWAY = "NoGateway"
    """RoutingReady: routing.mode is Gateway and no gateway is ready for the service; clients
    connect to the replicas."""
    NO_PORT_LEFT = "NoPortLeft"
    """RoutingReady: the services of the namespace have all ports of the gateways that one namespace
    may have, or all are taken; clients connect to the replicas."""
    GATEWAY_CONFIGURATION_FULL = "GatewayConfigurationFull"
    """RoutingReady: the services of the namespace have all of the gateways' configuration that one
    namespace may have, or gave way to those of one with less; clients connect to the replicas."""
    GATEWAY_BYPASSED = "GatewayBypassed"
    """RoutingReady: most requests reach the pods of targetRef through another Service; the latency
    is that of the replicas."""
    NO_ACTIVATOR = "NoActivator"
    """RoutingReady: no activator can hold requests while no replica is warm; the last replica is
    kept."""
    ROUTING_UPDATE_FAILED = "RoutingUpdateFailed"
    """RoutingReady: the API server rejected the Service or its EndpointSlice."""

    NO_PARTNER = "NoPartner"
    """PartnerSeen: the service is neither a prefill nor a decode pool of a pair."""
    PARTNER_SEEN = "PartnerSeen"
    """PartnerSeen: both pools of the pair see each other."""
    PARTNER_NOT_FOUND = "PartnerNotFound"
    """PartnerSeen: spec.prefillRef names an InferenceService that does not exist in the namespace;
    no replica is removed."""
    PARTNER_UNSUITABLE = "PartnerUnsuitable"
    """PartnerSeen: spec.prefillRef names a service that is no prefill pool: it names one itself,
    promises nothing on tokens, or is the prefill pool of another service; no replica is removed."""
    PARTNER_NOT_SEEN = "PartnerNotSeen"
    """PartnerSeen: the metrics of the other pool are missing or stale, or it has not been evaluated
    lately; no replica is removed."""
    PARTNER_UNRELATED = "PartnerUnrelated"
    """PartnerSeen: the two pools do not serve the same requests, so that the arrivals of the
    prefill pool are not used."""

    KUBERNETES_TOO_OLD = "KubernetesTooOld"
    """Doctor: the cluster is older than the oldest supported version."""
    CRD_MISSING = "CRDMissing"
    """Doctor: the CustomResourceDefinition is not installed."""
    CRD_OUTDATED = "CRDOutdated"
    """Doctor: the CustomResourceDefinition belongs to another version."""
    OPERATOR_MISSING = "OperatorMissing"
    """Doctor: no Deployment of the operator was found."""
    OPERATOR_DOWN = "OperatorDown"
    """Doctor: the operator has no available pod, or is scaled to 0."""
    OPERATORS_OVERLAP = "OperatorsOverlap"
    """Doctor: two operators with different Leases evaluate the same services."""
    NAMESPACE_UNREAD = "NamespaceUnread"
    """Doctor: the operator may not read a namespace that it is to watch; the others go on."""
    PERMISSION_MISSING = "PermissionMissing"
    """Doctor: the operator's ServiceAccount lacks a permission."""
    CERTIFICATE_MISSING = "CertificateMissing"
    """Doctor: gateways, activators or the operator have no certificate for their connections."""
    CERTIFICATE_EXPIRED = "CertificateExpired"
    """Doctor: the certificate of gateways, activators or the operator is no longer valid."""
    CLOCK_SKEW = "ClockSkew"
    """Doctor: a clock differs from the API server's."""
    NOT_EVALUATED = "NotEvaluated"
    """Doctor: the operator does not evaluate the service."""
    NO_ACCELERATORS = "NoAccelerators"
    """Doctor: no node has the accelerators that one replica requests."""
    NODES_UNAVAILABLE = "NodesUnavailable"
    """Doctor: nodes with the accelerators that replicas wait for are cordoned or not ready."""
    INSUFFICIENT_ACCELERATORS = "InsufficientAccelerators"
    """Doctor: the nodes have fewer accelerators than minReplicas of all services need."""
    WRONG_PORT = "WrongPort"
    """Doctor: the server does not listen on runtime.port, or its containers declare others."""
    WRONG_PROFILE = "WrongProfile"
    """Doctor: the metrics are those of another runtime.profile."""
    PROMETHEUS_UNREACHABLE = "PrometheusUnreachable"
    """Doctor: the operator gets no samples from its Prometheus."""
    ACCELERATORS_DIFFER = "AcceleratorsDiffer"
    """Event, doctor: spec.accelerator claims other accelerators than the pod template requests,
    which are counted."""
    PRIORITIES_DIFFER = "PrioritiesDiffer"
    """Doctor: the two pools of a pair have different scaling.priority, so that in a shortage one
    yields to the other replicas that both need."""
    POLICY_UNDONE = "PolicyUndone"
    """Doctor: a NetworkPolicy restricts the clients of a service, but admits a gateway, which
    serves every client."""
    POD_OVERDUE = "PodOverdue"
    """Doctor: a pod should have ended, and its node or a finalizer holds it, with its accelerators.
    """
    BUDGETS_OVERLAP = "BudgetsOverlap"
    """Doctor: more than one PodDisruptionBudget selects the pods of a service, so that Kubernetes
    evicts none of them."""
    NOT_CHECKED = "NotChecked"
    """Doctor: a check could not read what it needs."""

    CREATED = "Created"
    """Event: the Deployment was created."""
    ADOPTED = "Adopted"
    """Event: an orphaned Deployment of an earlier InferenceService with this name was adopted."""
    SCALED_UP = "ScaledUp"
    """Event: replicas were added."""
    SCALED_DOWN = "ScaledDown"
    """Event: replicas were removed."""
    REPLICA_REPLACED = "ReplicaReplaced"
    """Event: the pod of a slow or failing replica was evicted; its workload creates another."""
    CONNECTIONS_REBALANCED = "ConnectionsRebalanced"
    """Event: the pod of an overloaded replica was evicted, so that its clients connect to other
    ready replicas."""
    PREEMPTING_LOWER_PRIORITY = "PreemptingLowerPriority"
    """Event: services with a lower scaling.priority must yield accelerators to this one."""


def reason_of(text: str) -> StatusReason | None:
    """Return the reason; None for one of another version."""
    try:
        return StatusReason(text)
    except ValueError:
        return None
