"""The content of a Lease (coordination.k8s.io/v1) as a frozen value. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

API_VERSION = "coordination.k8s.io/v1"
KIND = "Lease"
NOTE = "headroom.dev/accelerators"
"""Annotation with the note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """Holder of the lease, and its duration after the last change.

    Records with equal content are equal; the version distinguishes two writes of it.
    """

    holder: str
    """Identity of the leader; empty where the lease was released."""
    duration_s: float
    transitions: int
    """Number of changes of the holder."""
    acquired: str
    renewed: str
    """Times by the clock of another machine: compared for equality, never subtracted."""
    note: str = field(default="", compare=False)
    """Note of a leader for the next one; a change of it says nothing about the holder."""
    version: str = field(default="", compare=False)
    """resourceVersion; empty: not stored yet."""

    @classmethod
    def parse(cls, lease: Mapping[str, Any]) -> LeaseRecord:
        """Read a Lease; any field of its spec may be absent. Raise ValueError otherwise."""
        spec, metadata = lease.get("spec") or {}, lease.get("metadata")
        if not isinstance(spec, Mapping) or not isinstance(metadata, Mapping):
            raise ValueError("a Lease must have metadata and a spec")
        return cls(
            holder=str(spec.get("holderIdentity") or ""),
            duration_s=float(spec.get("leaseDurationSeconds") or 0),
            transitions=int(spec.get("leaseTransitions") or 0),
            acquired=str(spec.get("acquireTime") or ""),
            renewed=str(spec.get("renewTime") or ""),
            note=str((metadata.get("annotations") or {}).get(NOTE) or ""),
            version=str(metadata.get("resourceVersion") or ""),
        )

    def manifest(self, namespace: str, name: str) -> dict[str, Any]:
        """Render for POST, or with a version for PUT, which it turns into a compare-and-swap."""
        metadata: dict[str, Any] = {"name": name, "namespace": namespace}
        if self.note:
            metadata["annotations"] = {NOTE: self.note}
        if self.version:
            metadata["resourceVersion"] = self.version
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": metadata,
            "spec": {
                "holderIdentity": self.holder,
                "leaseDurationSeconds": max(1, math.ceil(self.duration_s)),
                "leaseTransitions": self.transitions,
                "acquireTime": self.acquired,
                "renewTime": self.renewed,
            },
        }


def micro_time(epoch_s: float) -> str:
    """Render as metav1.MicroTime."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
