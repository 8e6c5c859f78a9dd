"""The state of one raw pod, and why. Pure.

The ladder, first match wins:

    deletionTimestamp                                     Terminating
    phase Failed or Succeeded                             Broken, unless another has its place
    Ready                                                 Ready
    PodScheduled is False                                 Unschedulable
    its node is lost                                      Broken
    a container waits for what will not pass unattended   Broken
    a container ended at least twice, last not long ago   Broken
    not ready for longer than the warm-up timeout         Broken
    otherwise                                             Warming
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headroom.controller.gather.pods import slow_start
from headroom.controller.gather.pods.container_faults import container_fault
from headroom.resources.object_conditions import condition, is_true, reason_and_message
from headroom.scaling.values.observation import PodState

_RawPod = Mapping[str, Any]


def state_of(raw: _RawPod, now_s: float, warmup_timeout_s: float) -> tuple[PodState, str]:
    """Return the state of a pod, and the reason with its message; empty where all is usual."""
    status = raw.get("status", {})
    ready, scheduled = condition(raw, "Ready"), condition(raw, "PodScheduled")
    if is_terminating(raw):
        return PodState.TERMINATING, ""
    if is_finished(raw):
        return PodState.BROKEN, reason_and_message(
            status.get("reason", status["phase"]), status.get("message")
        )
    if ready.get("status") == "True":
        return PodState.READY, ""
    if scheduled.get("status") == "False":
        return PodState.UNSCHEDULABLE, reason_and_message(
            scheduled.get("reason"), scheduled.get("message")
        )
    if ready.get("status") == "Unknown" or status.get("phase") == "Unknown":
        return PodState.BROKEN, reason_and_message(
            ready.get("reason", "NodeLost"), ready.get("message")
        )
    if _is_unready_without_kubelet(raw, ready):
        node = (raw.get("spec") or {}).get("nodeName", "")
        return PodState.BROKEN, reason_and_message("NodeLost", f"see kubectl describe node {node}")
    fault = container_fault(raw, now_s, warmup_timeout_s)
    if fault:
        return PodState.BROKEN, fault
    return PodState.WARMING, slow_start.waits_for(raw, now_s)


def is_terminating(raw: _RawPod) -> bool:
    """Return whether the pod has been deleted and is not gone yet."""
    return raw["metadata"].get("deletionTimestamp") is not None


def is_finished(raw: _RawPod) -> bool:
    """Return whether its containers have ended and will not be started again."""
    return raw.get("status", {}).get("phase") in ("Failed", "Succeeded")


def _is_unready_without_kubelet(raw: _RawPod, ready: _RawPod) -> bool:
    """Return whether it is unready because its kubelet does not report to the node controller.

    It says no reason and leaves ContainersReady as it was; a kubelet changes both and says one.
    """
    unready = ready.get("status") == "False" and not ready.get("reason")
    return unready and is_true(raw, "ContainersReady")
