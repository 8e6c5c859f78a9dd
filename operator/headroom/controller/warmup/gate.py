"""The readiness gate of a pod: its condition, whether it still holds, and the next one. Pure.

The condition names the containers that it was given for, so that a restarted container is warmed up
again, also by an operator that did not see the restart. Clocks of two machines are never compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headroom.api.timestamps import rfc3339
from headroom.controller.warmup.progress import Progress, Terms
from headroom.resources.names import WARM_GATE
from headroom.resources.object_conditions import condition, is_true

WARM, NOT_NEEDED = "Warm", "WarmedByServer"
WARMING, TOO_SLOW, TIMED_OUT = "WarmingUp", "TooSlow", "TimedOut"
RESTARTED, HOST_NETWORK = "ContainerRestarted", "HostNetwork"
QUIET_S = 2.0
"""A pod that is warm sooner gets no warming condition first."""
SAID_AGAIN_S = 10.0
"""Between two messages of one reason."""
_CONTAINERS = "; containers "

_RawPod = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReason:
    """The content of the condition, present or next."""

    holds: bool
    reason: str
    message: str

    def __str__(self) -> str:
        """Return it as text, part of a sentence about the pod."""
        return f"{WARM_GATE}: {self.reason}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedPod:
    """A pod with the gate, as read."""

    uid: str
    namespace: str
    name: str
    version: str
    address: str
    port: int
    """Port of its server."""
    on_host_network: bool
    leaving: bool
    """Deleted, failed or at its end."""
    started: bool
    """Its containers are ready, as the kubelet says."""
    containers: str
    """Names the containers that are counted, and changes with each start of one."""
    said: GateReason | None
    """None: nothing yet."""
    since: str
    """When the condition became so, as written."""

    @property
    def is_open(self) -> bool:
        """Whether the gate is open, for whatever containers."""
        return self.said is not None and self.said.holds

    @property
    def is_warm(self) -> bool:
        """Whether the gate is open for the containers that run."""
        return self.is_open and self.said_of == self.containers

    @property
    def said_of(self) -> str:
        """The containers that the condition was given for."""
        return "" if self.said is None else self.said.message.rpartition(_CONTAINERS)[2]


def read(raw: _RawPod, port: int) -> GatedPod | None:
    """Read a pod whose server listens on `port`; None if it has no gate."""
    spec, status, metadata = raw.get("spec") or {}, raw.get("status") or {}, raw["metadata"]
    if not has_gate(raw):
        return None
    known = condition(raw, WARM_GATE)
    said = None
    if known:
        said = GateReason(
            holds=known.get("status") == "True",
            reason=str(known.get("reason", "")),
            message=str(known.get("message", "")),
        )
    return GatedPod(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        version=str(metadata.get("resourceVersion", "")),
        address=str(status.get("podIP") or ""),
        port=port,
        on_host_network=bool(spec.get("hostNetwork")),
        leaving=bool(metadata.get("deletionTimestamp"))
        or status.get("phase") in ("Failed", "Succeeded"),
        started=is_true(raw, "ContainersReady"),
        containers=_containers(spec, status, port),
        said=said,
        since=str(known.get("lastTransitionTime") or ""),
    )


def wanted(pod: GatedPod, progress: Progress, terms: Terms, now_s: float) -> GateReason:
    """Return the condition for a pod's progress."""
    counted = f"{_CONTAINERS}{pod.containers}"
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
    message = f"warmup.sender is Server: nothing is sent{_CONTAINERS}{pod.containers}"
    return GateReason(holds=True, reason=NOT_NEEDED, message=message)


def unreachable(pod: GatedPod) -> GateReason:
    """Return why nothing is sent to a pod whose ports are the node's."""
    message = (
        "it is on the host network, where its port may be anybody's: nothing is sent; leave out "
        f"hostNetwork or the readiness gate{_CONTAINERS}{pod.containers}"
    )
    return GateReason(holds=False, reason=HOST_NETWORK, message=message)


def restarted(pod: GatedPod) -> GateReason:
    """Close the gate of a pod whose containers are not those that were warm."""
    message = f"a container restarted and is cold{_CONTAINERS}{pod.containers}"
    return GateReason(holds=False, reason=RESTARTED, message=message)


def is_worth_writing(
    pod: GatedPod, said: GateReason, progress: Progress, now_s: float, last_s: float
) -> bool:
    """Whether the condition changed enough to be written; `last_s`: when we last wrote."""
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
    """Return what is applied to the pod's status, at the version that was read."""
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


def has_gate(raw: _RawPod) -> bool:
    """Whether a pod becomes ready only when its gate is open."""
    gates = (raw.get("spec") or {}).get("readinessGates") or ()
    return any(gate.get("conditionType") == WARM_GATE for gate in gates)


def waits_for(raw: _RawPod) -> GateReason | None:
    """Return what a pod's gate waits for; None if it is open or containers are not ready."""
    pod = read(raw, 0)
    if pod is None or pod.is_open or not pod.started:
        return None
    if pod.said is None:
        return GateReason(holds=False, reason=WARMING, message="requests are about to be sent")
    message = pod.said.message.rpartition(_CONTAINERS)[0]
    return GateReason(holds=False, reason=pod.said.reason, message=message)


def _containers(spec: _RawPod, status: _RawPod, port: int) -> str:
    """Name the start of the container that listens on the port; of all where none says so."""
    serving = {
        one["name"]
        for one in spec.get("containers") or ()
        if any(each.get("containerPort") == port for each in one.get("ports") or ())
    }
    all_of_them = status.get("containerStatuses") or ()
    counted = [one for one in all_of_them if one["name"] in serving] or all_of_them
    starts = sorted(
        f"{one['name']} {one.get('containerID') or _started_at(one)} {one.get('restartCount', 0)}"
        for one in counted
    )
    return hashlib.sha256("\n".join(starts).encode()).hexdigest()[:12]


def _started_at(container: _RawPod) -> str:
    running = (container.get("state") or {}).get("running") or {}
    return str(running.get("startedAt") or "")


def _ms(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1.0 else f"{1000 * seconds:.3g} ms"
