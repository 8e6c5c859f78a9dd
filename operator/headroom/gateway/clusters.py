"""Envoy's clusters: load balancing, retries and outlier detection of a service's replicas.

Each request goes to the replica with the fewest requests in flight of all. Requests in flight are
bounded (by the runtime, see `runtime.py`, so that a new bound does not rebuild the cluster),
retries have a budget, and a replica with consecutive failures is ejected for some seconds.
"""

from __future__ import annotations

from headroom.gateway.bounds import (
    CONNECTION_BUFFER_BYTES,
    MAX_ANSWER_HEADERS_KIB,
    REPLICA_WINDOW_BYTES,
    SOCKET_OPTIONS,
    STREAM_WINDOW_BYTES,
)
from headroom.gateway.type_urls import CLUSTER, FROM_OPERATOR, Json, any_of, seconds, typed
from headroom.gateway.values import Route

CONNECT_TIMEOUT_S = 0.5
"""Short, because the address of a deleted pod does not refuse connections."""
UPSTREAM_IDLE_S = 4.0
"""Below the 5 s after which common servers close idle connections, to avoid a race."""
RETRY_BUDGET_PERCENT = 100.0
"""Share of the requests in flight. A killed replica has the fewest in
flight and is chosen for every
request until it is ejected, so each of them needs its retry; there is no second one."""
MIN_RETRIES = 64
"""Concurrent retries of a service with few requests."""
MIN_HEDGES = 3
IN_FLIGHT = 4096
"""In-flight bound while the capacity of the replicas is unknown."""
FAILURES_IN_A_ROW = 5
EJECTED_S = 2.0
"""First ejection; later ones last two, three times as long."""
LONGEST_EJECTED_S = 10.0
UNBOUNDED = 1_000_000_000
PRIORITIES = ("DEFAULT", "HIGH")
"""Small requests, and those with streamed bodies: each kind has the whole bound."""

_PROTOCOL_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"


def build(route: Route) -> list[Json]:
    """Build the clusters of a service: HTTP, and gRPC if it has a gRPC port."""
    clusters = [_cluster(route, route.key, {"http_protocol_options": {}})]
    if route.grpc_port is not None:
        # What a replica may send ahead of a client that does not read.
        http2 = {
            "http2_protocol_options": {
                "connection_keepalive": _PINGS,
                "initial_stream_window_size": STREAM_WINDOW_BYTES,
                "initial_connection_window_size": REPLICA_WINDOW_BYTES,
            }
        }
        clusters.append(_cluster(route, route.grpc_key, http2))
    if route.max_upgrades:
        clusters.append(_upgraded(route))
    return clusters


def _upgraded(route: Route) -> Json:
    """Build the cluster of the same replicas whose bound counts upgraded connections."""
    cluster = _cluster(route, route.upgrade_key, {"http_protocol_options": {}})
    cluster["eds_cluster_config"]["service_name"] = route.key
    threshold = {"max_connections": UNBOUNDED, "max_requests": route.max_upgrades}
    cluster["circuit_breakers"] = {"thresholds": [threshold]}
    return cluster


_PINGS = {"interval": "10s", "timeout": "2s"}


def _cluster(route: Route, name: str, protocol: Json) -> Json:
    return {
        "@type": CLUSTER,
        "name": name,
        "type": "EDS",
        "eds_cluster_config": {"eds_config": FROM_OPERATOR},
        "connect_timeout": seconds(CONNECT_TIMEOUT_S),
        "per_connection_buffer_limit_bytes": CONNECTION_BUFFER_BYTES,
        # A removed replica gets no more requests, whatever its health.
        "ignore_health_on_host_removal": True,
        "load_balancing_policy": {"policies": [{"typed_extension_config": _least_request(route)}]},
        "circuit_breakers": {
            "thresholds": [_thresholds(route, priority) for priority in PRIORITIES]
        },
        "outlier_detection": _OUTLIERS | (_HEDGED if route.hedge else {}),
        "common_lb_config": {
            "healthy_panic_threshold": {"value": 1.0},
            # Otherwise a replica that returns and fails again within a second stays selected.
            "update_merge_window": "0s",
        },
        "upstream_bind_config": {"socket_options": SOCKET_OPTIONS},
        "upstream_connection_options": {"tcp_keepalive": _KEEPALIVE},
        "typed_extension_protocol_options": {
            _PROTOCOL_OPTIONS: any_of(
                _PROTOCOL_OPTIONS,
                common_http_protocol_options={
                    "idle_timeout": seconds(UPSTREAM_IDLE_S),
                    "max_response_headers_kb": MAX_ANSWER_HEADERS_KIB,
                },
                explicit_http_config=protocol,
            )
        },
    }


def _least_request(route: Route) -> Json:
    choice: Json = {"selection_method": "FULL_SCAN"}
    if route.slow_start_s is not None:
        choice["slow_start_config"] = {"slow_start_window": seconds(route.slow_start_s)}
    return typed(
        "envoy.load_balancing_policies.least_request",
        "envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest",
        **choice,
    )


_KEEPALIVE = {"keepalive_time": 10, "keepalive_interval": 2, "keepalive_probes": 3}


def _thresholds(route: Route, priority: str) -> Json:
    percent = route.hedge.budget_percent if route.hedge else RETRY_BUDGET_PERCENT
    return {
        "priority": priority,
        "max_connections": UNBOUNDED,
        "max_pending_requests": UNBOUNDED,
        "max_requests": IN_FLIGHT,
        "retry_budget": {
            "budget_percent": {"value": percent},
            "min_retry_concurrency": MIN_HEDGES if route.hedge else MIN_RETRIES,
        },
        "track_remaining": False,
    }


_HEDGED = {"consecutive_local_origin_failure": FAILURES_IN_A_ROW}
"""A hedged attempt counts as a failure of its replica, although it may not be one."""

_OUTLIERS = {
    # An unreachable or failing replica has nothing in flight and would be selected repeatedly: it
    # is ejected at its first failure, before the retry. Deadlines are not failures of a replica;
    # they end the request, not the attempt.
    "split_external_local_origin_errors": True,
    "consecutive_local_origin_failure": 1,
    "enforcing_consecutive_local_origin_failure": 100,
    "enforcing_local_origin_success_rate": 0,
    # A 500 may be the request's fault; 502, 503 and 504 in a row are the replica's.
    "enforcing_consecutive_5xx": 0,
    "enforcing_success_rate": 0,
    "consecutive_gateway_failure": FAILURES_IN_A_ROW,
    "enforcing_consecutive_gateway_failure": 100,
    "interval": "1s",
    "base_ejection_time": seconds(EJECTED_S),
    "max_ejection_time": seconds(LONGEST_EJECTED_S),
    # If all replicas were ejected, none is.
    "max_ejection_percent": 100,
}
