"""Envoy's bootstrap configuration: operator address, gateway identity and its two ports.

`deploy/gateway/envoy.json` is its output, with names in braces that the image's entry point fills
in.
"""

from __future__ import annotations

from headroom.gateway import key_sets, runtime
from headroom.gateway.bootstrap.operator_connection import change_stream, operator_cluster
from headroom.gateway.bootstrap.ops_pages import MAX_PAGES, PAGES, ops_listener
from headroom.gateway.bootstrap.overload import overload_manager
from headroom.gateway.bootstrap.static_cluster import admin_address, static_cluster
from headroom.gateway.bounds import CONNECTION_BUFFER_BYTES
from headroom.gateway.listener import access_counts, model_routes
from headroom.gateway.type_urls import FROM_OPERATOR, Json, typed

OPS_PORT = 8081
"""Serves /ready, /stats/prometheus and the counts per service; nothing else of the
admin interface."""
ADMIN = "@headroom-admin"
"""An abstract socket, which the containers of the pod share. A port of loopback would be in reach
of tenants: a Service of theirs may be any name of DNS, and gateways read any path from the one with
their keys. To look: `curl --abstract-unix-socket headroom-admin http://envoy/help`."""
XDS_PORT = 18000
RELEASED_BYTES = 4 << 20
"""Bytes released to the system per second."""
_FETCHED = "http.async_response_buffer_limit"
"""Envoy's runtime key for the bytes of a key set that it fetches; 32 MiB where none is set."""
_PROGRAM_SIZE = "re2.max_program_size.error_level"
_REQUESTS_AT_ONCE = "http.max_requests_per_io_cycle"
"""Envoy's runtime key for the requests of a connection that are processed before other connections
have their turn; without it, all that one read holds: 300 of HTTP/2, each reset by its client, took
20 ms of the one thread that serves all clients."""


def bootstrap(
    *,
    xds_address: str,
    token_folder: str,
    secret_folder: str,
    operator_name: str | None,
    xds_port: int | str = XDS_PORT,
    ops_port: int = OPS_PORT,
    admin: str | int = ADMIN,
    heap_bytes: int | None = None,
) -> Json:
    """Build Envoy's bootstrap configuration.

    `token_folder` has the files `token`, `tls.crt`, `tls.key` and `ca.crt`, which the kubelet
    renews; `secret_folder` has those of `secrets()`. `operator_name` is the DNS name in the
    operator's certificate; None connects without TLS, as tests do on loopback. `heap_bytes`
    replaces the memory limit of the container, where there is none. `admin` is a socket's name, or
    a port of loopback for tests.
    """
    return {
        # The gates of tenants lead to internal listeners. What waits inside a connection to one
        # would be up to 1 MiB per request and direction.
        "bootstrap_extensions": [
            typed(
                "envoy.bootstrap.internal_listener",
                "envoy.extensions.bootstrap.internal_listener.v3.InternalListener",
                buffer_size_kb=CONNECTION_BUFFER_BYTES >> 10,
            )
        ],
        "admin": {"address": admin_address(admin)},
        "dynamic_resources": {
            "ads_config": change_stream(),
            "lds_config": FROM_OPERATOR,
            "cds_config": FROM_OPERATOR,
        },
        "layered_runtime": {"layers": _RUNTIME_LAYERS},
        "static_resources": {
            "listeners": [ops_listener(ops_port)],
            "clusters": [
                operator_cluster(xds_address, xds_port, token_folder, secret_folder, operator_name),
                static_cluster("admin", admin_address(admin)),
                *(
                    static_cluster(name, admin_address(admin)) | {"circuit_breakers": _FEW}
                    for name in PAGES
                ),
            ],
        },
        "stats_flush_interval": access_counts.MERGED_EVERY,
        "stats_config": {"stats_matcher": {"inclusion_list": {"patterns": _STATS}}},
        "deferred_stat_options": {"enable_deferred_creation_stats": True},
        "overload_manager": overload_manager(heap_bytes),
        # Freed memory is returned to the system: applying configuration takes more than keeping it.
        "memory_allocator_manager": {
            "bytes_to_release": RELEASED_BYTES,
            "memory_release_interval": "1s",
        },
    }


_RUNTIME_LAYERS = [
    {
        "name": "bounds",
        "static_layer": {
            _FETCHED: key_sets.BYTES,
            _PROGRAM_SIZE: model_routes.PROGRAM_SIZE,
            _REQUESTS_AT_ONCE: 1,
        },
    },
    {
        "name": runtime.LAYER,
        "rtds_layer": {"name": runtime.LAYER, "rtds_config": FROM_OPERATOR},
    },
]

_STATS = [
    {"prefix": "server."},
    {"prefix": f"{access_counts.PREFIX}."},
    {"prefix": "listener_manager."},
    {"prefix": "cluster_manager."},
    {"prefix": "overload."},
    {"safe_regex": {"regex": r"listener\..*\.downstream_(global_)?cx_overflow"}},
    {
        "safe_regex": {
            "regex": r"cluster\..*\.(upstream_rq_(total|active|retry|retry_success|"
            r"retry_overflow|pending_overflow|timeout|[1-5]xx|429|503)|upstream_cx_active|"
            r"upstream_cx_connect_fail|membership_(total|healthy)|"
            r"outlier_detection\.ejections_active)"
        }
    },
    {
        "safe_regex": {
            "regex": r"http\..*\.(downstream_rq_(total|active|[1-5]xx)|"
            r"downstream_cx_active)"
        }
    },
    {"safe_regex": {"regex": r"runtime\..*"}},
]
"""The kept statistics: all of Envoy's would waste memory with 500 services."""


_FEW = {"thresholds": [{"max_connections": MAX_PAGES}]}
