"""The warm replicas of a service: Envoy's load assignments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headroom.gateway.type_urls import ENDPOINTS, Json
from headroom.gateway.values import Endpoint, Route


def build(route: Route, replicas: Iterable[Endpoint]) -> list[Json]:
    """Build what fills the clusters of a service; equal replicas in any order give equal JSON."""
    ordered = sorted(set(replicas))
    assignments = [_assignment(route.key, ordered)]
    if route.grpc_port is not None:
        # At the route's own port it is an activator, which hears at one port of all calls.
        calls = [
            one if one.port == route.port else replace(one, port=route.grpc_port) for one in ordered
        ]
        assignments.append(_assignment(route.grpc_key, calls))
    return assignments


def _assignment(cluster: str, endpoints: Iterable[Endpoint]) -> Json:
    hosts = [{"endpoint": {"address": _address(one)}} for one in endpoints]
    return {
        "@type": ENDPOINTS,
        "cluster_name": cluster,
        "endpoints": [{"lb_endpoints": hosts}] if hosts else [],
    }


def _address(endpoint: Endpoint) -> Json:
    return {"socket_address": {"address": endpoint.address, "port_value": endpoint.port}}
