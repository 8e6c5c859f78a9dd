"""IP addresses of a cluster; a node has its own network, so all nodes use the same addresses."""

from __future__ import annotations

import socket

LOOPBACK = "127.0.0.1"
NODE_ADDRESS = "10.203.0.1"
NODE_API_PORT = 6443
POD_RANGE = "10.244.0.0/24"
SERVICE_RANGE = "10.96.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"
ADVERTISED_WITHOUT_NODE = "192.0.2.1"
"""The API refuses loopback as its own endpoint; nothing connects to this (RFC 5737)."""
NODE_NAME = "local"
SERVER_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    LOOPBACK,
    NODE_ADDRESS,
    API_SERVICE_ADDRESS,
)


def listener_on_loopback() -> socket.socket:
    """A listening socket on a free port of the host's loopback."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind((LOOPBACK, 0))
    listener.listen(128)
    return listener


def port_of(listener: socket.socket) -> int:
    """The port that a socket is bound to."""
    port: int = listener.getsockname()[1]
    return port
