"""Next steps for conditions that are not as they should be. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from headroom.api.reasons import StatusReason
from headroom.api.service_status.conditions import (
    MAX_MESSAGE,
    ConditionStatus,
    ConditionType,
    is_good,
    shortened,
)
from headroom.api.start_steps import (
    DIAGNOSE,
    step_to_admit,
    step_to_fetch,
    step_to_schedule,
    step_to_start,
)

_STEPS: Mapping[StatusReason, str] = {
    StatusReason.EVALUATION_FAILED: "if it persists, see the operator's log",
    StatusReason.INVALID_SPEC: "correct the spec and apply it again",
    StatusReason.WARMING_UP: "wait; if it persists, see kubectl describe pod, and its log",
    StatusReason.NO_READY_REPLICAS: "no pod is starting: kubectl describe the workload",
    StatusReason.REPLICAS_BROKEN: "see kubectl describe pod, or logs --container NAME --previous",
    StatusReason.MODEL_UNAVAILABLE: "fix spec.model, or see kubectl logs POD --container model",
    StatusReason.REPLICAS_UNSCHEDULABLE: "add nodes, free accelerators, or add what is missing",
    StatusReason.POD_CREATION_FORBIDDEN: "raise the quota, or fix what the policy rejects",
    StatusReason.TARGET_NOT_SCALABLE: "set spec.targetRef to a resource with a scale subresource",
    StatusReason.NAMESPACE_TERMINATING: "apply the service in another namespace",
    StatusReason.APPLY_FAILED: "fix what is rejected; it is retried within a minute",
    StatusReason.RECOMMEND_ONLY: "set it to Auto to have them written",
    StatusReason.EXTERNALLY_SCALED: "set it to Auto to have the decision written",
    StatusReason.METRICS_STALE: DIAGNOSE,
    StatusReason.METRICS_MISSING: DIAGNOSE,
    StatusReason.COLLECTING_METRICS: "wait up to a minute",
    StatusReason.SCALE_FAILED: "fix what is rejected: a policy, or the operator's permissions",
    StatusReason.MAX_REPLICAS: "raise maxReplicas to allow more",
    StatusReason.OPERATOR_LIMIT: "or free accelerators of other services",
    StatusReason.RATE_LIMITED: "wait, or raise scaling.scaleUp.rate",
    StatusReason.CAPACITY_SHORTAGE: "see CapacityAvailable",
    StatusReason.YIELDED_TO_PRIORITY: "add accelerators, or raise scaling.priority",
    StatusReason.NO_TRAFFIC: "send requests to measure it",
    StatusReason.LATENCY_NOT_MEASURED: "use a latency histogram with a bound at the target",
    StatusReason.CLASS_NOT_MEASURED: "use the headroom server, or one service per promise",
    StatusReason.REPLICA_SLOW: "see its node: kubectl describe pod",
    StatusReason.REPLICA_IMPLAUSIBLE: "compare its metrics with those of another replica",
    StatusReason.REPLICA_FAILING: "see kubectl logs of the pod",
    StatusReason.NO_GATEWAY: "set gateway.enabled of the chart, or routing.mode to Service",
    StatusReason.NO_PORT_LEFT: "delete services, or set routing.mode of some to Service",
    StatusReason.GATEWAY_CONFIGURATION_FULL: "give services fewer routes, or mode Service",
    StatusReason.NO_ACTIVATOR: "see the pods of headroom-activator, or set minReplicas to 1",
    StatusReason.ROUTING_UPDATE_FAILED: "fix what is rejected; it is retried at once",
    StatusReason.SCALED_TO_ZERO: "send a request to start one",
    StatusReason.HIDDEN_DEMAND: "wait: replicas are added until clients no longer wait",
    StatusReason.RETRIES_COUNTED: "let clients back off with jitter, under a retry budget",
    StatusReason.CONNECTIONS_PINNED: "set routing.mode to Gateway, or limit a connection's age",
    StatusReason.DOWNSTREAM_LIMIT: "look at what replicas share; more of them do not help",
    StatusReason.COST_UNKNOWN: "send requests; it is learned from them",
    StatusReason.PARTNER_NOT_FOUND: "apply it, or correct or remove spec.prefillRef",
    StatusReason.PARTNER_UNSUITABLE: "name the prefill pool in spec.prefillRef of the decode pool",
    StatusReason.PARTNER_NOT_SEEN: "see the conditions of the other pool",
    StatusReason.PARTNER_UNRELATED: "correct spec.prefillRef: name the pool that sends requests",
    StatusReason.BATCH_SIZE_EXCEEDED: "set runtime.maxBatchSize to the server's own limit",
}
_BY_MESSAGE: Mapping[StatusReason, Callable[[str], str]] = {
    StatusReason.WARMING_UP: step_to_start,
    StatusReason.REPLICAS_BROKEN: step_to_start,
    StatusReason.MODEL_UNAVAILABLE: step_to_fetch,
    StatusReason.REPLICAS_UNSCHEDULABLE: step_to_schedule,
    StatusReason.POD_CREATION_FORBIDDEN: step_to_admit,
}
"""The next step that Kubernetes' own message implies; empty if it implies none."""
_RAISE = {"External": "raise spec.replicas", "Recommend": "scale the workload up"}
_EXPLAINED_BY = {
    StatusReason.NO_READY_REPLICAS: ConditionType.READY,
    StatusReason.METRICS_MISSING: ConditionType.METRICS_AVAILABLE,
    StatusReason.METRICS_STALE: ConditionType.METRICS_AVAILABLE,
}
"""Condition that has the next step, for a reason that several conditions share."""
IN_MESSAGE = frozenset(
    {
        StatusReason.PENDING,
        StatusReason.DELETING,
        StatusReason.TARGET_NOT_FOUND,
        StatusReason.TARGET_FORBIDDEN,
        StatusReason.TARGET_ALREADY_MANAGED,
        StatusReason.AUTOSCALER_CONFLICT,
        StatusReason.SCALING_DISABLED,
        StatusReason.DEPLOYMENT_REPEATEDLY_OVERWRITTEN,
        StatusReason.REPLICAS_REPEATEDLY_OVERWRITTEN,
        StatusReason.SLO_INFEASIBLE,
        StatusReason.ABOVE_TARGET,
        StatusReason.GATEWAY_BYPASSED,
    }
)
"""Their messages contain the step that fits."""


def steps_of(mode: str, replicas: int, ready: int, namespace: str) -> Mapping[StatusReason, str]:
    """Return the steps that differ by mode of scaling and namespace.

    Where decisions are advice, others act. Where all requested replicas are ready, their number is
    what is wrong, and no pod.
    """
    doctor = f"{DIAGNOSE} -n {namespace}"
    steps = {StatusReason.METRICS_STALE: doctor, StatusReason.METRICS_MISSING: doctor}
    if replicas and not ready:
        learned = "it is learned once a replica is ready"
        steps[StatusReason.COST_UNKNOWN] = f"{learned}; see {ConditionType.READY}"
    if mode not in _RAISE:
        if ready >= replicas:
            steps[StatusReason.NO_READY_REPLICAS] = f"see {ConditionType.ABLE_TO_SCALE}"
        return steps
    steps |= {
        StatusReason.SCALED_TO_ZERO: f"{_RAISE[mode]} to start one",
        StatusReason.HIDDEN_DEMAND: f"{_RAISE[mode]}: the decision is only advice",
    }
    if not replicas:
        steps[StatusReason.NO_READY_REPLICAS] = f"{_RAISE[mode]} to start one"
    return steps


def with_next_step(
    kind: ConditionType,
    status: ConditionStatus,
    reason: StatusReason,
    message: str,
    steps: Mapping[StatusReason, str] = MappingProxyType({}),
) -> str:
    """Return the message, with the next step if the condition is not as it should be.

    `steps` are those that differ from the usual ones.

    The result fits a status: messages of other systems are cut, the step is not.
    """
    home = _EXPLAINED_BY.get(reason, kind)
    if home is not kind:
        step = f"see {home}"
    else:
        from_message = _BY_MESSAGE[reason](message) if reason in _BY_MESSAGE else ""
        step = from_message or steps.get(reason) or _STEPS.get(reason, "")
    if is_good(kind, status) or not step:
        return shortened(message)
    return f"{shortened(message, MAX_MESSAGE - len(f'; {step}'))}; {step}"
