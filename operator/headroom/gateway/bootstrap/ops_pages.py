"""A gateway's port for kubelet, Prometheus and operator: read-only pages."""

from __future__ import annotations

from headroom.gateway import key_sets
from headroom.gateway.bootstrap.static_cluster import socket_address
from headroom.gateway.bounds import (
    CONNECTION_BUFFER_BYTES,
    MAX_HEADERS_KIB,
    SOCKET_OPTIONS,
)
from headroom.gateway.listener import access_counts
from headroom.gateway.type_urls import (
    HTTP_FILTERS,
    Json,
    any_of,
    seconds,
    typed,
)

PAGES = ("figures", "counts")
"""Clusters of the page for Prometheus and of that for the operator: neither waits for the other."""
MAX_PAGES = 4
"""Pages of each that are written at a time; each takes milliseconds, and further ones wait."""
READ_WITHIN_S = 2.0
"""A client that does not read its page gives its place to the next one after this. The operator
waits as long for its own."""
PER_ADDRESS = {"max_tokens": 3, "tokens_per_fill": 1, "fill_interval": "1s"}
"""Pages of each kind that one address may ask for. The operator asks every two seconds, Prometheus
more rarely; where no NetworkPolicy is in force, any pod may ask."""
REMEMBERED = 1000
"""Addresses; a further one replaces the one that was idle for the longest time."""
_RATE = "envoy.filters.http.local_ratelimit"
_RATE_TYPE = "envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit"
_WANTED: list[Json] = [
    {"name": ":method", "string_match": {"exact": "GET"}},
    {"name": key_sets.MARK, "present_match": True, "invert_match": True},
]
"""Not what this gateway itself sends: a tenant's key set may have its address."""


def ops_listener(port: int) -> Json:
    """Build the port for kubelet, Prometheus and operator: three read-only pages."""
    routes = [
        {"match": {"path": "/ready", "headers": _WANTED}, "route": {"cluster": "admin"}},
        _page("/stats/prometheus", {"cluster": "figures"}),
        _page(
            access_counts.PAGE,
            {"cluster": "counts", "prefix_rewrite": access_counts.ADMIN_PATH},
        ),
    ]
    manager = typed(
        "envoy.filters.network.http_connection_manager",
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="ops",
        # Not counted among the clients' connections, so that probes are answered at their bound:
        # what is held here has to be renewed every few seconds.
        codec_type="HTTP1",
        request_headers_timeout="5s",
        request_timeout="5s",
        use_remote_address=True,
        common_http_protocol_options={"idle_timeout": "5s", "max_headers_count": 50},
        max_request_headers_kb=MAX_HEADERS_KIB,
        route_config={
            "name": "ops",
            "virtual_hosts": [{"name": "ops", "domains": ["*"], "routes": routes}],
        },
        http_filters=[
            typed(_RATE, _RATE_TYPE, stat_prefix="ops"),
            typed("envoy.filters.http.router", f"{HTTP_FILTERS}.router.v3.Router"),
        ],
    )
    return {
        "name": "ops",
        "address": socket_address("0.0.0.0", port),  # noqa: S104  (the kubelet probes the pod's address)
        "ignore_global_conn_limit": True,
        "per_connection_buffer_limit_bytes": CONNECTION_BUFFER_BYTES,
        "socket_options": SOCKET_OPTIONS,
        "filter_chains": [{"filters": [manager]}],
    }


def _page(path: str, route: Json) -> Json:
    """Build the route of a page of figures, which takes the main thread's time."""
    always = {"default_value": {"numerator": 100, "denominator": "HUNDRED"}}
    rate = any_of(
        _RATE_TYPE,
        stat_prefix="ops",
        token_bucket=PER_ADDRESS,
        filter_enabled=always,
        filter_enforced=always,
        always_consume_default_token_bucket=False,
        rate_limits=[{"actions": [{"remote_address": {}}]}],
        descriptors=[{"entries": [{"key": "remote_address"}], "token_bucket": PER_ADDRESS}],
        max_dynamic_descriptors=REMEMBERED,
    )
    within = {"max_stream_duration": seconds(READ_WITHIN_S)}
    return {
        "match": {"path": path, "headers": _WANTED},
        "route": route | {"max_stream_duration": within},
        "typed_per_filter_config": {_RATE: rate},
    }
