"""The testbed: a control plane that all worlds share, and nodes that are only objects."""

from __future__ import annotations

import contextlib
import itertools
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from cluster import ControlPlane
from reliability.testbed.admin import Admin
from reliability.testbed.exporter import Exporter

BASE = Path(__file__).parents[3] / "deploy" / "base"
SYSTEM, OPERATOR = "headroom-system", "headroom-operator"
ACCELERATOR = "example.com/accelerator"
"""The resource of these nodes alone, so that pods of other tests do not
come here, nor these to their nodes."""
PODS_PER_NODE = 250


@dataclass(slots=True)
class SharedCluster:
    """The cluster as all worlds share it."""

    cluster: ControlPlane
    admin: Admin
    exporter: Exporter
    credentials: Path
    """The operator's own, as its service account has them."""
    scratch: Path
    addresses: itertools.count[int] = field(default_factory=lambda: itertools.count(1))


@contextlib.asynccontextmanager
async def shared_cluster(cluster: ControlPlane, scratch: Path) -> AsyncIterator[SharedCluster]:
    """Install what ships, but the operator's Deployment, and a node, which goes with the block."""
    shipped = yaml.safe_load_all(cluster.kubectl("kustomize", BASE))
    cluster.apply(*(one for one in shipped if one["kind"] != "Deployment"))
    cluster.kubectl(
        *("wait", "--for=condition=Established", "--timeout=30s"),
        *("crd", "inferenceservices.headroom.dev"),
    )
    credentials = cluster.service_account_kubeconfig(SYSTEM, OPERATOR)
    async with Admin(cluster.kubeconfig) as admin, Exporter() as exporter:
        node = f"reliability-{secrets.token_hex(2)}"
        await _add_node(admin, node)
        try:
            yield SharedCluster(cluster, admin, exporter, credentials, scratch)
        finally:
            await admin.delete(f"/api/v1/nodes/{node}")


async def _add_node(admin: Admin, name: str) -> None:
    room = {"cpu": "640", "memory": "2560Gi", "pods": str(PODS_PER_NODE), ACCELERATOR: "1000"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    await admin.create("/api/v1/nodes", node)
    await admin.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
    ready = {"type": "Ready", "status": "True", "reason": "Written"}
    status = {"capacity": room, "allocatable": room, "conditions": [ready]}
    await admin.patch(f"/api/v1/nodes/{name}/status", {"status": status})
