"""Remedies for the reasons of conditions."""

from __future__ import annotations

from shlex import quote

from headroom.api.reasons import StatusReason
from headroom.api.service_status.status import Status
from headroom.cli.commands.doctor.facts import Manifest, resource

_R = StatusReason

REMEDIES: dict[StatusReason, str] = {
    _R.PENDING: "wait for the first evaluation; if it takes minutes, read the operator's log",
    _R.EVALUATION_FAILED: "read the operator's log for this service",
    _R.INVALID_SPEC: "kubectl edit {name} --namespace {namespace}",
    _R.WARMING_UP: "wait; if it takes long: kubectl describe pods {pods}, then kubectl logs",
    _R.NO_READY_REPLICAS: "kubectl describe pods {pods}",
    _R.REPLICAS_BROKEN: "kubectl describe pods {pods}",
    _R.MODEL_UNAVAILABLE: "correct spec.model, or kubectl logs {pods} --container model",
    _R.REPLICAS_UNSCHEDULABLE: "add nodes, free accelerators, or add what else the message names",
    _R.POD_CREATION_FORBIDDEN: "raise the quota, or change what the admission policy rejects: "
    "kubectl get events --namespace {namespace}",
    _R.TARGET_NOT_FOUND: "create the workload, or delete the InferenceService and apply it with "
    "the kind and name of one that exists: spec.targetRef cannot be changed",
    _R.TARGET_FORBIDDEN: "grant the operator the permission that the message names",
    _R.TARGET_NOT_SCALABLE: "delete the InferenceService, and apply it with the targetRef of a "
    "resource that has a scale subresource",
    _R.NAMESPACE_TERMINATING: "apply the service in another namespace",
    _R.APPLY_FAILED: "change what the API server rejects; the write is repeated every minute",
    _R.DEPLOYMENT_REPEATEDLY_OVERWRITTEN: "set what the client that the message names writes in "
    "the InferenceService, or exclude the Deployment from it",
    _R.RECOMMEND_ONLY: "to write decisions, set spec.scaling.mode to Auto",
    _R.EXTERNALLY_SCALED: "to write decisions, set spec.scaling.mode to Auto",
    _R.DELETING: "wait for the controller of the finalizer that the message names; without one: "
    "kubectl edit {name} --namespace {namespace}, and remove the finalizer",
    _R.TARGET_ALREADY_MANAGED: "delete one of the two InferenceServices",
    _R.AUTOSCALER_CONFLICT: "delete the other autoscaler",
    _R.SCALING_DISABLED: "to enable scaling, scale the workload to at least 1 replica",
    _R.REPLICAS_REPEATEDLY_OVERWRITTEN: "stop the client that the message names from writing "
    "replicas, or set spec.scaling.mode to Recommend",
    _R.METRICS_STALE: "check that the pods answer and that a NetworkPolicy lets the operator "
    "reach them: kubectl get pods {pods}",
    _R.METRICS_MISSING: "check that the server exposes the metrics that the message names: "
    "kubectl logs {pods}",
    _R.COLLECTING_METRICS: "wait; the history is complete within a minute",
    _R.SCALE_FAILED: "follow the message; the write is repeated every minute",
    _R.MAX_REPLICAS: "raise spec.scaling.maxReplicas",
    _R.OPERATOR_LIMIT: "raise the operator's limits, or free replicas of other services",
    _R.RATE_LIMITED: "wait, or raise the rate in spec.scaling.scaleUp",
    _R.CAPACITY_SHORTAGE: "see CapacityAvailable: kubectl describe pods {pods}",
    _R.YIELDED_TO_PRIORITY: "add accelerators, or raise spec.scaling.priority",
    _R.NO_TRAFFIC: "send requests to measure the latency",
    _R.CLASS_NOT_MEASURED: "to measure classes, use the headroom server or one service per promise",
    _R.LATENCY_NOT_MEASURED: "to measure it, set a runtime.profile whose "
    "latency histogram has a bound at the target, or set the target to one of its bounds",
    _R.ABOVE_TARGET: "wait for replicas that start; if none do, headroom explain {service} "
    "--namespace {namespace} shows which rule or limit sets their number",
    _R.SLO_INFEASIBLE: "raise spec.slo.latency.target above the latency of an idle replica, or use "
    "a faster accelerator or model",
    _R.HIDDEN_DEMAND: "nothing to do: replicas are added until clients no longer wait; if "
    "maxReplicas or accelerators bind, another finding says so",
    _R.RETRIES_COUNTED: "let clients retry with exponential backoff and jitter, under a retry "
    "budget (at most 10% of their requests), and send x-retry-attempt: N with each retry, "
    "so that retries do not count as demand",
    _R.CONNECTIONS_PINNED: "set spec.routing.mode to Gateway, which sends each request to the "
    "replica with the fewest in flight (with targetRef, clients of the Service that RoutingReady "
    "names); or let the server or the clients close connections after "
    "some requests or seconds; to have overloaded replicas evicted, so that their connections are "
    "spread, set spec.scaling.rebalanceConnections to true; if a router chooses replicas by cached "
    "prefixes, let it spread requests that have little in common",
    _R.DOWNSTREAM_LIMIT: "look at what the replicas share (a database, a cache, a network, a GPU): "
    "more replicas do not help, and spec.scaling.maxReplicas can be lowered until it is fixed",
    _R.REPLICA_SLOW: "check the node and the accelerator of the pod that the message names; to "
    "have such pods replaced, set spec.scaling.replaceSlowReplicas to true",
    _R.REPLICA_FAILING: "kubectl logs of the pod that the message names; to have such pods "
    "replaced, set spec.scaling.replaceSlowReplicas to true",
    _R.REPLICA_IMPLAUSIBLE: "compare the metrics of the pod that the message names with those of "
    "another; replace the pod if they are wrong, or correct what is between it and the operator",
    _R.PARTNER_NOT_FOUND: "apply the prefill pool that the message names, or correct or remove "
    "spec.prefillRef: kubectl edit {name} --namespace {namespace}",
    _R.PARTNER_UNSUITABLE: "let spec.prefillRef of the decode pool name the service that promises "
    "slo.timeToFirstToken, and only there: kubectl edit {name} --namespace {namespace}",
    _R.PARTNER_NOT_SEEN: "see the conditions of the other pool, which the message names: kubectl "
    "get hisvc --namespace {namespace}",
    _R.PARTNER_UNRELATED: "let spec.prefillRef name the pool whose requests this one answers: "
    "kubectl edit {name} --namespace {namespace}",
    _R.COST_UNKNOWN: "send requests; the cost is learned from them",
    _R.BATCH_SIZE_EXCEEDED: "set spec.runtime.maxBatchSize to the largest batch that the server is "
    "configured for; until then more replicas are kept than are needed",
    _R.NO_GATEWAY: "install the gateways (gateway.enabled of the chart, or deploy/components/"
    "gateway of the plain manifests), or set spec.routing.mode to Service",
    _R.NO_PORT_LEFT: "set spec.routing.mode of services that need no gateway to Service; the "
    "operator's administrator can raise --gateway-ports-per-namespace",
    _R.GATEWAY_CONFIGURATION_FULL: "shorten spec.routing of the namespace's services, or set "
    "spec.routing.mode of those that need no gateway to Service",
    _R.GATEWAY_BYPASSED: "point clients to the Service that the message names; requests to other "
    "Services of the workload are balanced by connection",
    _R.NO_ACTIVATOR: "check the pods of headroom-activator, or set spec.scaling.minReplicas to 1",
    _R.ROUTING_UPDATE_FAILED: "change what the API server rejects; the write is repeated",
}
BEHIND_GATEWAY: dict[StatusReason, str] = {
    _R.CONNECTIONS_PINNED: "let all clients use the Service of the gateway (see RoutingReady): "
    "connections that bypass it stay with the replicas that accepted them",
}
"""Remedies that differ where spec.routing.mode is Gateway already."""
AS_ADVICE: dict[StatusReason, str] = {
    _R.HIDDEN_DEMAND: "raise the replicas: the decision is only advice in this scaling.mode",
}
"""Remedies that differ where another client scales."""
AS_ADVICE_AT_ZERO: dict[StatusReason, str] = {
    _R.NO_READY_REPLICAS: "raise the replicas: in this scaling.mode the operator starts none",
}
"""Remedies that differ where another client scales and has requested no replica."""
_UNKNOWN_REASON = "follow the message, and read the operator's log"


def remedy_of(one: Manifest, status: Status, reason: StatusReason | None) -> str:
    """Return the next step for one service, which has this status."""
    if reason is None:
        return _UNKNOWN_REASON
    namespace = one["metadata"]["namespace"]
    routed = (one["spec"].get("routing") or {}).get("mode") == "Gateway"
    remedies = REMEDIES | BEHIND_GATEWAY if routed else REMEDIES
    if (one["spec"].get("scaling") or {}).get("mode", "Auto") != "Auto":
        remedies = remedies | AS_ADVICE | ({} if status.replicas else AS_ADVICE_AT_ZERO)
    return remedies.get(reason, _UNKNOWN_REASON).format(
        name=resource(one),
        service=one["metadata"]["name"],
        namespace=namespace,
        pods=f"--namespace {namespace} --selector {quote(status.selector)}",
    )
