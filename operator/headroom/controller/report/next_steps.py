"""What a person does about a condition that is not as it should be. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from headroom.api.conditions import ConditionReason, ConditionStatus, ConditionType

_LOOK = "kubectl headroom doctor looks for the cause"

_STEPS: Mapping[ConditionReason, str] = {
    ConditionReason.EVALUATION_FAILED: "if it stays so, see the operator's log",
    ConditionReason.INVALID_SPEC: "correct the spec and apply it again",
    ConditionReason.WARMING_UP: "wait; if it lasts, see the pod's log",
    ConditionReason.NO_READY_REPLICAS: "no pod is on its way: kubectl describe the workload",
    ConditionReason.REPLICAS_BROKEN: "see kubectl describe pod, and kubectl logs --previous",
    ConditionReason.MODEL_UNAVAILABLE: "mend spec.model, or see kubectl logs POD --container model",
    ConditionReason.REPLICAS_UNSCHEDULABLE: "add nodes, free accelerators, or lower maxReplicas",
    ConditionReason.REPLICAS_REFUSED: "raise the quota, or mend what the policy refuses",
    ConditionReason.TARGET_NOT_SCALABLE: "name in targetRef what has a scale",
    ConditionReason.NAMESPACE_TERMINATING: "apply the service in another namespace",
    ConditionReason.APPLY_FAILED: "mend what is refused; it is tried again within a minute",
    ConditionReason.RECOMMEND_ONLY: "to have them written, set it to Auto",
    ConditionReason.FOLLOWING_REPLICAS: "to have it written, set it to Auto",
    ConditionReason.SIGNALS_STALE: _LOOK,
    ConditionReason.SIGNALS_ABSENT: _LOOK,
    ConditionReason.WINDOW_FILLING: "wait, it passes by itself",
    ConditionReason.SCALE_FAILED: "mend what is refused: a policy, or the operator's rights",
    ConditionReason.AT_MAX_REPLICAS: "to have more, raise maxReplicas",
    ConditionReason.OPERATOR_LIMIT: "or free what other services hold",
    ConditionReason.RATE_LIMITED: "wait, or allow more at once in scaling.scaleUp",
    ConditionReason.CAPACITY_SHORTAGE: "see CapacityAvailable",
    ConditionReason.YIELDED_TO_PRIORITY: "add accelerators, or raise scaling.priority",
    ConditionReason.NO_TRAFFIC: "send requests to have one",
    ConditionReason.LATENCY_NOT_MEASURED: "to have it checked, name a profile with a histogram",
    ConditionReason.ABOVE_TARGET: "see ScalingLimited and CapacityAvailable, or wait for replicas",
    ConditionReason.NO_GATEWAY: "install deploy/components/gateway, or set routing.mode to Service",
    ConditionReason.NO_ACTIVATOR: "see the pods of headroom-activator, or set minReplicas to 1",
    ConditionReason.ROUTING_NOT_WRITTEN: "mend what is refused; it is tried again at once",
    ConditionReason.AT_ZERO: "send a request to have one",
    ConditionReason.COST_UNKNOWN: "send requests, it is learnt from them",
}
_ELSEWHERE = {
    ConditionReason.NO_READY_REPLICAS: ConditionType.READY,
    ConditionReason.SIGNALS_ABSENT: ConditionType.METRICS_AVAILABLE,
}
"""The condition that says what to do, for a reason that others have too."""
SAID_ALREADY = frozenset(
    {
        ConditionReason.PENDING,
        ConditionReason.TARGET_NOT_FOUND,
        ConditionReason.TARGET_FORBIDDEN,
        ConditionReason.TARGET_TAKEN,
        ConditionReason.CONFLICTING_AUTOSCALER,
        ConditionReason.SCALED_TO_ZERO,
        ConditionReason.REPLICAS_CONTESTED,
        ConditionReason.TARGET_BELOW_FLOOR,
    }
)
"""Their messages are made with the remedy that fits."""


def with_next_step(
    kind: ConditionType, status: ConditionStatus, reason: ConditionReason, message: str
) -> str:
    """Give the message, and what to do where the condition is not as it should be."""
    good = ConditionStatus.FALSE if kind is ConditionType.SCALING_LIMITED else ConditionStatus.TRUE
    home = _ELSEWHERE.get(reason, kind)
    step = f"see {home}" if home is not kind else _STEPS.get(reason, "")
    return message if status is good or not step else f"{message}; {step}"
