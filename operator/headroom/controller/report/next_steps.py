"""What a person does about a condition that is not as it should be. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from headroom.api.conditions import ConditionStatus, ConditionType
from headroom.api.reasons import StatusReason

_LOOK = "kubectl headroom doctor looks for the cause"

_STEPS: Mapping[StatusReason, str] = {
    StatusReason.EVALUATION_FAILED: "if it stays so, see the operator's log",
    StatusReason.INVALID_SPEC: "correct the spec and apply it again",
    StatusReason.WARMING_UP: "wait; if it lasts, see the pod's log",
    StatusReason.NO_READY_REPLICAS: "no pod is on its way: kubectl describe the workload",
    StatusReason.REPLICAS_BROKEN: "see kubectl describe pod, and kubectl logs --previous",
    StatusReason.MODEL_UNAVAILABLE: "mend spec.model, or see kubectl logs POD --container model",
    StatusReason.REPLICAS_UNSCHEDULABLE: "add nodes, free accelerators, or lower maxReplicas",
    StatusReason.POD_CREATION_FORBIDDEN: "raise the quota, or mend what the policy refuses",
    StatusReason.TARGET_NOT_SCALABLE: "name in targetRef what has a scale",
    StatusReason.NAMESPACE_TERMINATING: "apply the service in another namespace",
    StatusReason.APPLY_FAILED: "mend what is refused; it is tried again within a minute",
    StatusReason.RECOMMEND_ONLY: "to have them written, set it to Auto",
    StatusReason.EXTERNALLY_SCALED: "to have it written, set it to Auto",
    StatusReason.METRICS_STALE: _LOOK,
    StatusReason.METRICS_MISSING: _LOOK,
    StatusReason.COLLECTING_METRICS: "wait, it passes by itself",
    StatusReason.SCALE_FAILED: "mend what is refused: a policy, or the operator's rights",
    StatusReason.AT_MAX_REPLICAS: "to have more, raise maxReplicas",
    StatusReason.OPERATOR_LIMIT: "or free what other services hold",
    StatusReason.RATE_LIMITED: "wait, or allow more at once in scaling.scaleUp",
    StatusReason.CAPACITY_SHORTAGE: "see CapacityAvailable",
    StatusReason.YIELDED_TO_PRIORITY: "add accelerators, or raise scaling.priority",
    StatusReason.NO_TRAFFIC: "send requests to have one",
    StatusReason.LATENCY_NOT_MEASURED: "to have it checked, name a profile with a histogram",
    StatusReason.ABOVE_TARGET: "see ScalingLimited and CapacityAvailable, or wait for replicas",
    StatusReason.NO_GATEWAY: "install deploy/components/gateway, or set routing.mode to Service",
    StatusReason.NO_ACTIVATOR: "see the pods of headroom-activator, or set minReplicas to 1",
    StatusReason.ROUTING_UPDATE_FAILED: "mend what is refused; it is tried again at once",
    StatusReason.AT_ZERO: "send a request to have one",
    StatusReason.COST_UNKNOWN: "send requests, it is learnt from them",
}
_ELSEWHERE = {
    StatusReason.NO_READY_REPLICAS: ConditionType.READY,
    StatusReason.METRICS_MISSING: ConditionType.METRICS_AVAILABLE,
}
"""The condition that says what to do, for a reason that others have too."""
SAID_ALREADY = frozenset(
    {
        StatusReason.PENDING,
        StatusReason.TARGET_NOT_FOUND,
        StatusReason.TARGET_FORBIDDEN,
        StatusReason.TARGET_ALREADY_MANAGED,
        StatusReason.AUTOSCALER_CONFLICT,
        StatusReason.SCALING_DISABLED,
        StatusReason.REPLICAS_REPEATEDLY_OVERWRITTEN,
        StatusReason.SLO_INFEASIBLE,
    }
)
"""Their messages are made with the remedy that fits."""


def with_next_step(
    kind: ConditionType, status: ConditionStatus, reason: StatusReason, message: str
) -> str:
    """Give the message, and what to do where the condition is not as it should be."""
    good = ConditionStatus.FALSE if kind is ConditionType.SCALING_LIMITED else ConditionStatus.TRUE
    home = _ELSEWHERE.get(reason, kind)
    step = f"see {home}" if home is not kind else _STEPS.get(reason, "")
    return message if status is good or not step else f"{message}; {step}"
