"""Local clusters for machines without Docker: a real control plane and a real node on this machine.

`ControlPlane` serves the API and schedules; `Node` runs pods as well; `ExternalCluster` is whatever
`KUBECONFIG` names. All are context managers with the interface of `Cluster`.

- what users call: cli, interface, control_plane, node, external, errors
- a cluster on this machine: local, plan, ownership, layout, keeper, supervisor
- its programs: components, configuration, certificates, addresses, access
- a node's namespaces: isolation, cgroups, forwarding
- what is built and installed once: provision, content, locks
- processes and requests: commands, raw, progress
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cluster.control_plane import ControlPlane
    from cluster.errors import ClusterError, NotPossibleError
    from cluster.external import ExternalCluster
    from cluster.interface import Cluster, Endpoint, wait_until
    from cluster.node import Node

__all__ = [
    "Cluster",
    "ClusterError",
    "ControlPlane",
    "Endpoint",
    "ExternalCluster",
    "Node",
    "NotPossibleError",
    "wait_until",
]

# Imported when asked for: keeper, supervisor and forwarder live in this package too, are started
# one after the other, and need none of this, which takes half a second to import.
_HOMES = {
    "Cluster": "cluster.interface",
    "ClusterError": "cluster.errors",
    "ControlPlane": "cluster.control_plane",
    "Endpoint": "cluster.interface",
    "ExternalCluster": "cluster.external",
    "Node": "cluster.node",
    "NotPossibleError": "cluster.errors",
    "wait_until": "cluster.interface",
}


if not TYPE_CHECKING:  # a type checker would then accept any name

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'cluster' has no attribute {name!r}")
        return getattr(importlib.import_module(_HOMES[name]), name)
