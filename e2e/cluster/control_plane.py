"""A control plane without nodes: a real API server; tests write the status of pods."""

from __future__ import annotations

import json
from typing import Any

from cluster import components
from cluster.errors import ClusterError, NotPossibleError
from cluster.local import LocalCluster
from cluster.plan import Component

GPU = "nvidia.com/gpu"


class ControlPlane(LocalCluster):
    """etcd, API server, controller manager and scheduler on loopback; needs no root; up in 3 s.

    The controllers that evict and delete pods of silent nodes are off, so that nodes which are only
    objects stay as they were written.
    """

    kind = "plane"

    @property
    def has_node(self) -> bool:
        """Pods do not run here."""
        return False

    def load(self, image: str) -> None:
        """Refuse: nothing runs here."""
        raise NotPossibleError(f"a control plane runs no pods, so it cannot use the image {image}.")

    def add_node(self, name: str, gpus: int = 8) -> None:
        """Make a node object with room for pods: the scheduler takes it for real, nothing runs."""
        room = {"cpu": "64", "memory": "256Gi", "pods": "250", GPU: str(gpus)}
        ready: dict[str, Any] = {"type": "Ready", "status": "True", "reason": "Written"}
        self.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        # Admission marks new nodes as not ready, and no controller here takes the mark off again.
        self.kubectl("patch", "node", name, "--type=merge", "-p", '{"spec":{"taints":null}}')
        status = {"capacity": room, "allocatable": room, "conditions": [ready]}
        self._write_status(name, status)

    def _write_status(self, name: str, status: dict[str, Any]) -> None:
        """Write what a kubelet would: merge `status` into a node's status."""
        self.kubectl(
            *("patch", "node", name),
            *("--subresource=status", "--type=merge", "-p", json.dumps({"status": status})),
        )

    def _require(self) -> None:
        if not self.programs.complete:
            raise ClusterError(
                "the Kubernetes program is not built. Build it with "
                "`python -m cluster setup --control-plane-only`."
            )

    def _components(self, port: int, listener_fd: int) -> tuple[Component, ...]:
        return components.control_plane(self.layout, self.programs, port)
