"""The local cluster: a real control plane, and a real node, on one machine with nothing around it.

`ControlPlane` serves the API and schedules; `Node` runs pods as well; `ExternalCluster` is whatever
`KUBECONFIG` names. All are context managers with the interface of `Cluster`.
"""

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
