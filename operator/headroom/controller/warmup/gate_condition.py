"""The next condition of a pod's readiness gate, and whether it is worth a write. Pure."""

from __future__ import annotations

from typing import Any

from headroom.api.timestamps import rfc3339
from headroom.controller.warmup.gate import CONTAINERS, WARMING, GatedPod, GateReason
from headroom.controller.warmup.progress import Progress, Terms
from headroom.resources.names import WARM_GATE

WARM, NOT_NEEDED = "Warm", "WarmedByServer"
TOO_SLOW, TIMED_OUT = "TooSlow", "TimedOut"
RESTARTED, HOST_NETWORK = "ContainerRestarted", "HostNetwork"
QUIET_S = 2.0
"""Time before the first warming condition is written; a pod that is warm sooner gets none."""
SAID_AGAIN_S = 10.0
"""Between two messages of one reason."""


def wanted(pod: GatedPod, progress: Progress, terms: Terms, now_s: float) -> GateReason:
    """Return the condition for a pod's progress."""
    counted = f"{CONTAINERS}{pod.containers}"
    limit = f"warmup.maxLatency {_ms(terms.max_latency_s)}"
    if progress.is_warm(terms):
        quick = f"the slowest of the last {terms.requests} took {_ms(progress.slowest_s())}"
        message = f"{progress.sent} requests were sent, {quick} ({limit}){counted}"
        return GateReason(holds=True, reason=WARM, message=message)
    if progress.fault is not None:
        reason, message = str(progress.fault), progress.said
    elif progress.slow >= terms.requests:
        reason = TOO_SLOW
        message = (
            f"{progress.sent} requests were answered, the last in {_ms(progress.answered_s[-1])} "
            f"({limit}): see the server, or raise warmup.maxLatency"
        )
    else:
        reason = WARMING
        message = f"{progress.sent} requests were sent, {terms.requests} are to meet {limit}"
    if progress.is_late(terms, now_s):
        message = f"not warm within warmup.timeout ({terms.timeout_s:g} s): {reason}: {message}"
        reason = TIMED_OUT
    return GateReason(holds=False, reason=reason, message=message + counted)


def not_needed(pod: GatedPod) -> GateReason:
    """Open the gate of a pod whose server, by the present spec, warms itself."""
    message = f"warmup.sender is Server: nothing is sent{CONTAINERS}{pod.containers}"
    return GateReason(holds=True, reason=NOT_NEEDED, message=message)


def unreachable(pod: GatedPod) -> GateReason:
    """Return why nothing is sent to a pod whose ports are the node's."""
    message = (
        "it is on the host network, where its port may be another process's: nothing is sent; "
        f"leave out hostNetwork or the readiness gate{CONTAINERS}{pod.containers}"
    )
    return GateReason(holds=False, reason=HOST_NETWORK, message=message)


def restarted(pod: GatedPod) -> GateReason:
    """Close the gate of a pod whose containers are not those that were warm."""
    message = f"a container restarted and is cold{CONTAINERS}{pod.containers}"
    return GateReason(holds=False, reason=RESTARTED, message=message)


def is_worth_writing(
    pod: GatedPod, said: GateReason, progress: Progress, now_s: float, last_s: float
) -> bool:
    """Return whether the condition changed enough for a write; `last_s` is the last one."""
    known = pod.said
    if said.holds:
        return not pod.is_warm
    if known is not None and known.holds:  # of earlier containers: it takes requests, and goes on
        return said.reason in (TIMED_OUT, HOST_NETWORK)
    if known is None:
        return now_s - progress.begun_s >= QUIET_S or progress.fault is not None
    if known.reason != said.reason:
        return True
    return known.message != said.message and now_s - last_s >= SAID_AGAIN_S


def status_manifest(pod: GatedPod, said: GateReason, now_s: float) -> dict[str, Any]:
    """Return the fields for the pod's status, at the version that was read."""
    known = pod.said
    changed = known is None or known.holds != said.holds or not pod.since
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
            "resourceVersion": pod.version,
        },
        "status": {
            "conditions": [
                {
                    "type": WARM_GATE,
                    "status": "True" if said.holds else "False",
                    "reason": said.reason,
                    "message": said.message,
                    "lastTransitionTime": rfc3339(now_s) if changed else pod.since,
                }
            ]
        },
    }


def _ms(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1.0 else f"{1000 * seconds:.3g} ms"
