"""A gateway's port for kubelet, Prometheus and operator: read-only pages."""

from __future__ import annotations

from headroom.gateway import access_counts, key_sets
from headroom.gateway.bootstrap.static_cluster import socket_address
from headroom.gateway.bounds import (
    CONNECTION_BUFFER_BYTES,
    MAX_HEADERS_KIB,
    SOCKET_OPTIONS,
)
from headroom.gateway.type_urls import (
    HTTP_FILTERS,
    Json,
    typed,
)

MAX_PAGES = 4
"""Pages of figures that are written at a time; each takes milliseconds, and further ones wait."""
_WANTED: list[Json] = [
    {"name": ":method", "string_match": {"exact": "GET"}},
    {"name": key_sets.MARK, "present_match": True, "invert_match": True},
]
"""Not what this gateway itself sends: a tenant's key set may have its address."""


def ops_listener(port: int) -> Json:
    """Build the port for kubelet, Prometheus and operator: three read-only pages."""
    routes: list[Json] = [
        {"match": {"path": path, "headers": _WANTED}, "route": {"cluster": cluster}}
        for path, cluster in (("/ready", "admin"), ("/stats/prometheus", "pages"))
    ]
    counted = {"cluster": "pages", "prefix_rewrite": access_counts.ADMIN_PATH}
    routes.append({"match": {"path": access_counts.PAGE, "headers": _WANTED}, "route": counted})
    manager = typed(
        "envoy.filters.network.http_connection_manager",
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="ops",
        # Not counted among the clients' connections, so that probes are answered at their bound:
        # what is held here has to be renewed every few seconds.
        codec_type="HTTP1",
        request_headers_timeout="5s",
        request_timeout="5s",
        common_http_protocol_options={"idle_timeout": "5s", "max_headers_count": 50},
        max_request_headers_kb=MAX_HEADERS_KIB,
        route_config={
            "name": "ops",
            "virtual_hosts": [{"name": "ops", "domains": ["*"], "routes": routes}],
        },
        http_filters=[typed("envoy.filters.http.router", f"{HTTP_FILTERS}.router.v3.Router")],
    )
    return {
        "name": "ops",
        "address": socket_address("0.0.0.0", port),  # noqa: S104  (the kubelet probes the pod's address)
        "ignore_global_conn_limit": True,
        "per_connection_buffer_limit_bytes": CONNECTION_BUFFER_BYTES,
        "socket_options": SOCKET_OPTIONS,
        "filter_chains": [{"filters": [manager]}],
    }
