"""Envoy's configuration from services and warm replicas. Pure.

- values: values, type_urls; the whole: built_routes, snapshot; how Envoy starts: bootstrap/
- a service's port, and what happens to a request there: listener/
- its replicas: clusters, endpoints
- limits: bounds, runtime, key_sets
- messages to activators: activator_messages
"""

from headroom.gateway.snapshot import Snapshot, snapshot
from headroom.gateway.values import Endpoint, Route

__all__ = ["Endpoint", "Route", "Snapshot", "snapshot"]
