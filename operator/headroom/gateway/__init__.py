"""Envoy's configuration from services and warm replicas. Pure.

- values: values, type_urls; the whole: built_routes, snapshot; how Envoy starts: bootstrap/
- a service's port: listeners, routes, model_routes, client_headers, request_deadlines,
  request_bodies, local_replies, access_counts
- its replicas: clusters, endpoints, retries
- limits: bounds, runtime, tenant_in_flight, tenant_rates, client_tokens, key_sets
- messages to activators: activator_messages
"""

from headroom.gateway.snapshot import Snapshot, snapshot
from headroom.gateway.values import Endpoint, Route

__all__ = ["Endpoint", "Route", "Snapshot", "snapshot"]
