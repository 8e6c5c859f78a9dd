"""Envoy's configuration from services and warm replicas. Pure."""

from headroom.gateway.snapshot import Snapshot, snapshot
from headroom.gateway.values import Endpoint, Route

__all__ = ["Endpoint", "Route", "Snapshot", "snapshot"]
