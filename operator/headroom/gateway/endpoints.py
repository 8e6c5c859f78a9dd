"""The warm replicas of a service: Envoy's load assignments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headroom.gateway.type_urls import ENDPOINTS, Json
from headroom.gateway.values import Endpoint, Route


def build(route: Route, replicas: Iterable[Endpoint]) -> list[Json]:
    """Build the endpoints of a service's clusters; the order of replicas does not matter."""
    ordered = sorted(set(replicas))
    assignments = [_assignment(route.key, ordered)]
    if route.grpc_port is not None:
        # An endpoint at the route's own port is an activator, which takes gRPC at the same port.
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
