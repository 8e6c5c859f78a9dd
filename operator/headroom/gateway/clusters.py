"""How a service's replicas are chosen, tried and given up: Envoy's clusters.

Each request goes to the replica with the fewest requests in flight, all compared. What is in flight
is bounded (by the runtime, see `runtime.py`, so that a new bound does not build the cluster anew),
retries are bounded by a budget, and a replica that fails in a row is left out for a while.
"""

from __future__ import annotations

from headroom.gateway.type_urls import CLUSTER, FROM_OPERATOR, Json, any_of, seconds, typed
from headroom.gateway.values import Route

CONNECT_TIMEOUT_S = 0.5
"""A replica that is gone does not even refuse."""
UPSTREAM_IDLE_S = 4.0
"""Below the 5 s after which common servers close an idle connection under a request."""
RETRY_BUDGET_PERCENT = 100.0
"""Of the requests in flight. A replica that was killed has the fewest in flight and is chosen for
every request until it is left out, so each of them needs its second try; none has a third."""
MIN_RETRIES = 64
"""Retries at once of a service with hardly any requests."""
MIN_HEDGES = 3
IN_FLIGHT = 4096
"""Of a service whose replicas' capacity is not known yet."""
FAILURES_IN_A_ROW = 5
EJECTED_S = 2.0
"""At first; then twice, three times as long."""
LONGEST_EJECTED_S = 10.0
UNBOUNDED = 1_000_000_000

_PROTOCOL_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"


def build(route: Route) -> list[Json]:
    """Build the clusters of a service: one for HTTP, and one for gRPC where it is taken."""
    clusters = [_cluster(route, route.key, {"http_protocol_options": {}})]
    if route.grpc_port is not None:
        http2 = {"http2_protocol_options": {"connection_keepalive": _PINGS}}
        clusters.append(_cluster(route, route.grpc_key, http2))
    return clusters


_PINGS = {"interval": "10s", "timeout": "2s"}


def _cluster(route: Route, name: str, protocol: Json) -> Json:
    return {
        "@type": CLUSTER,
        "name": name,
        "type": "EDS",
        "eds_cluster_config": {"eds_config": FROM_OPERATOR},
        "connect_timeout": seconds(CONNECT_TIMEOUT_S),
        # A replica that leaves gets no request more, whatever is known of its health.
        "ignore_health_on_host_removal": True,
        "load_balancing_policy": {"policies": [{"typed_extension_config": _least_request(route)}]},
        "circuit_breakers": {"thresholds": [_thresholds(route)]},
        "outlier_detection": _OUTLIERS | (_HEDGED if route.hedge else {}),
        "common_lb_config": {
            "healthy_panic_threshold": {"value": 1.0},
            # Else a replica that comes back and fails again within a second stays chosen for it.
            "update_merge_window": "0s",
        },
        "upstream_connection_options": {"tcp_keepalive": _KEEPALIVE},
        "typed_extension_protocol_options": {
            _PROTOCOL_OPTIONS: any_of(
                _PROTOCOL_OPTIONS,
                common_http_protocol_options={"idle_timeout": seconds(UPSTREAM_IDLE_S)},
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


def _thresholds(route: Route) -> Json:
    percent = route.hedge.budget_percent if route.hedge else RETRY_BUDGET_PERCENT
    return {
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
"""A try that is hedged counts as a failure of its replica, which it need not be."""

_OUTLIERS = {
    # What cannot be reached or breaks off has nothing in flight, and would be chosen again and
    # again: it is left out at its first failure, before the second try is made. Deadlines are no
    # failure of a replica; they end the request, not the try.
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
    # Where all are left out, none is.
    "max_ejection_percent": 100,
}
