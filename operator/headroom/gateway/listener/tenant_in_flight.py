"""In-flight limits per tenant: a request passes one of several gates, chosen by tenant hash.

A gate is a cluster with a bound on its requests (Envoy counts them over all threads). It leads to
the service's internal listener, where load balancing considers the requests of all tenants. A
tenant always uses the same gate; tenants with the same hash share one.

A service is routed through one gateway, so a gate's bound is the tenant's. While a service moves to
another gateway, both admit the whole share until the connections to the first end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from headroom.gateway.bounds import CONNECTION_BUFFER_BYTES
from headroom.gateway.clusters import IN_FLIGHT, UNBOUNDED, UPSTREAM_IDLE_S
from headroom.gateway.listener import local_replies
from headroom.gateway.type_urls import CLUSTER, Json, any_of, seconds
from headroom.gateway.values import Route

USUAL_PERCENT = 50
"""Share of all requests in flight that a tenant may have where none is set: whatever one tenant
sends, half of the places are left to the others."""
GATES = 32
"""Gates per service with shares; two tenants share a gate with probability 1 / GATES."""
OVERFLOW = "too many requests in flight for this tenant"

_PROTOCOL_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"


def inside(route: Route) -> str:
    """Return the name of the internal listener behind the gates."""
    return f"{route.key}/inside"


def apply(route: Route) -> bool:
    """Return whether the service has in-flight shares per tenant."""
    return route.tenants is not None


def clusters(route: Route) -> list[Json]:
    """Build the gates; none without shares."""
    return [_gate(route, name) for name in _gates(route)]


def bounds(
    routes: Iterable[Route], in_flight: Mapping[str, int], busy: Mapping[str, int]
) -> dict[str, int]:
    """Return the bound of each gate of the services whose bound is known.

    Requests above `busy`, which is when all replicas are busy, only wait: a share that was asked
    for is of those below, or it would only make other tenants wait.
    """
    return {
        gate: _share(route, in_flight[route.key], busy.get(route.key, in_flight[route.key]))
        for route in routes
        if route.key in in_flight
        for gate in _gates(route)
    }


def front(route: Route, header: str) -> Json:
    """Build the part of the outer connection manager that routes to the gates, by a header."""
    gates = [{"name": name, "weight": 1} for name in _gates(route)]
    action: Json = {
        "weighted_clusters": {"clusters": gates, "use_hash_policy": True},
        # a request without a tenant counts as its hop's: a random gate would be no limit
        "hash_policy": [
            {"header": {"header_name": header}, "terminal": True},
            {"connection_properties": {"source_ip": True}},
        ],
        "timeout": "0s",  # the internal listener enforces deadlines
    }
    if route.max_upgrades:
        action["upgrade_configs"] = [{"upgrade_type": "websocket", "enabled": True}]
    return {
        "stat_prefix": f"{route.key}/gates",
        "route_config": {
            "name": f"{route.key}/gates",
            "validate_clusters": False,
            "virtual_hosts": [
                {
                    "name": f"{route.key}/gates",
                    "domains": ["*"],
                    "routes": [{"match": {"prefix": "/"}, "route": action}],
                }
            ],
        },
        "local_reply_config": local_replies.build(overflow=OVERFLOW),
    }


def _gates(route: Route) -> Iterator[str]:
    if apply(route):
        yield from (f"{route.key}/gate/{number}" for number in range(GATES))


def _share(route: Route, in_flight: int, busy: int) -> int:
    """Return a tenant's in-flight limit, at least one. Example: 25 % of 62 is 15.5, so 16."""
    limit = route.tenants
    assert limit is not None
    if limit.in_flight_percent is None:
        return max(1, math.ceil(in_flight * USUAL_PERCENT / 100))
    return max(1, math.ceil(min(in_flight, busy) * limit.in_flight_percent / 100))


def _gate(route: Route, name: str) -> Json:
    address = {"envoy_internal_address": {"server_listener_name": inside(route)}}
    hosts = [{"endpoint": {"address": address}}]
    protocols: Json = {"http_protocol_options": {}, "http2_protocol_options": {}}
    threshold = {
        "max_connections": UNBOUNDED,
        "max_pending_requests": UNBOUNDED,
        "max_requests": _share(route, IN_FLIGHT, IN_FLIGHT),
    }
    return {
        "@type": CLUSTER,
        "name": name,
        "type": "STATIC",
        "connect_timeout": seconds(1.0),
        "per_connection_buffer_limit_bytes": CONNECTION_BUFFER_BYTES,
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": hosts}]},
        "circuit_breakers": {"thresholds": [threshold]},
        "typed_extension_protocol_options": {
            _PROTOCOL_OPTIONS: any_of(
                _PROTOCOL_OPTIONS,
                common_http_protocol_options={"idle_timeout": seconds(UPSTREAM_IDLE_S)},
                use_downstream_protocol_config=protocols,
            )
        },
    }
