"""Static configurations of Envoy in front of replicas on loopback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.gateway.routes import bench_route
from headroom.gateway import Endpoint, clusters, endpoints
from headroom.gateway.listener import listeners

_HTTP = "type.googleapis.com/envoy.extensions.filters.network"
_ROUTER = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"


def shipped(port: int, replicas: Sequence[int]) -> dict[str, Any]:
    """Return what the operator would publish, as static configuration."""
    route = bench_route(port)
    hosts = [Endpoint("127.0.0.1", each) for each in replicas]
    (cluster,), (assignment,) = clusters.build(route), endpoints.build(route, hosts)
    for one in (cluster, assignment):
        del one["@type"]
    del cluster["eds_cluster_config"]
    cluster |= {"type": "STATIC", "load_assignment": assignment}
    (listener,) = listeners.build(route)
    del listener["@type"]
    return {"static_resources": {"listeners": [listener], "clusters": [cluster]}}


def only_routes(port: int, replicas: Sequence[int]) -> dict[str, Any]:
    """Return the smallest configuration that routes requests to replicas in turn."""
    whole = {"match": {"prefix": "/"}, "route": {"cluster": "model"}}
    manager = {
        "@type": f"{_HTTP}.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "model",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [whole]}]},
        "http_filters": [{"name": "router", "typed_config": {"@type": _ROUTER}}],
    }
    hosts = [{"endpoint": {"address": _address("127.0.0.1", each)}} for each in replicas]
    listener = {
        "name": "model",
        "address": _address("0.0.0.0", port),
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
    }
    assignment = {"cluster_name": "model", "endpoints": [{"lb_endpoints": hosts}]}
    cluster = {"name": "model", "type": "STATIC", "load_assignment": assignment}
    return {"static_resources": {"listeners": [listener], "clusters": [cluster]}}


def _address(host: str, port: int) -> dict[str, Any]:
    return {"socket_address": {"address": host, "port_value": port}}
