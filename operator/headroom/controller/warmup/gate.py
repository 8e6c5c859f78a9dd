"""The readiness gate of a pod as read: its condition, and whether it still holds. Pure.

The condition names the containers that it was given for, so that a restarted container is warmed up
again, also by an operator that did not see the restart. Clocks of two machines are never compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headroom.resources.names import WARM_GATE
from headroom.resources.object_conditions import condition, is_true

WARMING = "WarmingUp"
CONTAINERS = "; containers "
"""Between a condition's message and the name of the containers that it was given for."""

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
    """Time when the condition became so, as written."""

    @property
    def is_open(self) -> bool:
        """Whether the gate is open, for whatever containers."""
        return self.said is not None and self.said.holds

    @property
    def is_warm(self) -> bool:
        """Whether the gate is open for the containers that run."""
        return self.is_open and self.warmed_containers == self.containers

    @property
    def warmed_containers(self) -> str:
        """The containers that the condition was given for."""
        return "" if self.said is None else self.said.message.rpartition(CONTAINERS)[2]


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


def has_gate(raw: _RawPod) -> bool:
    """Return whether a pod becomes ready only when its gate is open."""
    gates = (raw.get("spec") or {}).get("readinessGates") or ()
    return any(gate.get("conditionType") == WARM_GATE for gate in gates)


def waits_for(raw: _RawPod) -> GateReason | None:
    """Return the reason of a closed gate; None if it is open or containers are not ready."""
    pod = read(raw, 0)
    if pod is None or pod.is_open or not pod.started:
        return None
    if pod.said is None:
        return GateReason(holds=False, reason=WARMING, message="requests are about to be sent")
    message = pod.said.message.rpartition(CONTAINERS)[0]
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
