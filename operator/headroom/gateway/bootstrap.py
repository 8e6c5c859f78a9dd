"""Envoy's bootstrap configuration: operator address, gateway identity and its two ports.

`deploy/gateway/envoy.json` is its output, with names in braces that the image's entry point fills
in.
"""

from __future__ import annotations

from headroom.gateway import access_counts, key_sets, model_routes, runtime
from headroom.gateway.bounds import (
    CONNECTION_BUFFER_BYTES,
    MAX_CONNECTIONS,
    MAX_HEADERS_KIB,
    SOCKET_OPTIONS,
)
from headroom.gateway.type_urls import (
    FROM_OPERATOR,
    XDS_CLUSTER,
    Json,
    any_of,
    seconds,
    typed,
)

OPS_PORT = 8081
"""Serves /ready, /stats/prometheus and the counts per service; nothing else of the
admin interface."""
ADMIN_PORT = 9901
"""Bound to loopback only."""
XDS_PORT = 18000
RESET_FROM, RESET_ALL, REFUSED_FROM = 0.7, 0.9, 0.95
"""Shares of the container's memory limit: from the first to the second, streams of HTTP/2 are
reset, the largest first; from the last on, new requests are refused. `bounds.py` keeps HTTP/1.1
below all of them."""
CLOSED_FROM, CLOSED_ALL = 0.8, 0.9
"""Shares of the memory limit: between them ever more connections of HTTP/2 that send anything are
closed. Their 100 streams take up to 6 MB, although each holds too little to be reset."""
CROWDED_FROM, CROWDED_ALL, CROWDED_IDLE_S = 0.5, 0.8, 5.0
"""Shares of all connections: between them the time for which one may be idle falls from minutes to
these seconds, so that idle ones of one client give way to others."""
TRACKED_FROM_POWER = 12
"""Streams that hold fewer than 2^12 bytes are not reset."""
RELEASED_BYTES = 4 << 20
"""Bytes released to the system per second."""
_FETCHED = "http.async_response_buffer_limit"
"""Envoy's runtime key for the bytes of a key set that it fetches; 32 MiB where none is set."""
_PROGRAM_SIZE = "re2.max_program_size.error_level"

_HTTP = "envoy.extensions.filters.http"
_PROTOCOL_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_TOKEN, _CERTIFICATE, _TRUSTED = "operator-token", "gateway-certificate", "operator-ca"


def bootstrap(
    *,
    xds_address: str,
    token_folder: str,
    secret_folder: str,
    operator_name: str | None,
    xds_port: int | str = XDS_PORT,
    ops_port: int = OPS_PORT,
    admin_port: int = ADMIN_PORT,
    heap_bytes: int | None = None,
) -> Json:
    """Build Envoy's bootstrap configuration.

    `token_folder` has the files `token`, `tls.crt`, `tls.key` and `ca.crt`, which the kubelet
    renews; `secret_folder` has those of `secrets()`. `operator_name` is the DNS name in the
    operator's certificate; None connects without TLS, as tests do on loopback. `heap_bytes`
    replaces the memory limit of the container, where there is none.
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
        "admin": {"address": _socket("127.0.0.1", admin_port)},
        "dynamic_resources": {
            "ads_config": _stream(),
            "lds_config": FROM_OPERATOR,
            "cds_config": FROM_OPERATOR,
        },
        "layered_runtime": {
            "layers": [
                {
                    "name": "bounds",
                    "static_layer": {
                        _FETCHED: key_sets.BYTES,
                        _PROGRAM_SIZE: model_routes.PROGRAM_SIZE,
                    },
                },
                {
                    "name": runtime.LAYER,
                    "rtds_layer": {"name": runtime.LAYER, "rtds_config": FROM_OPERATOR},
                },
            ]
        },
        "static_resources": {
            "listeners": [_ops(ops_port)],
            "clusters": [
                _operator(xds_address, xds_port, token_folder, secret_folder, operator_name),
                _static("admin", "127.0.0.1", admin_port),
                _static("pages", "127.0.0.1", admin_port) | {"circuit_breakers": _FEW},
            ],
        },
        "stats_flush_interval": access_counts.MERGED_EVERY,
        "stats_config": {"stats_matcher": {"inclusion_list": {"patterns": _STATS}}},
        "deferred_stat_options": {"enable_deferred_creation_stats": True},
        "overload_manager": _overload(heap_bytes),
        # Freed memory is returned to the system: applying configuration takes more than keeping it.
        "memory_allocator_manager": {
            "bytes_to_release": RELEASED_BYTES,
            "memory_release_interval": "1s",
        },
    }


def secrets(token_folder: str) -> dict[str, Json]:
    """Build the files, by name, with the paths of Envoy's token, certificate and trusted CAs."""
    folder = {"watched_directory": {"path": token_folder}}
    certificate = {
        "certificate_chain": _file(token_folder, "tls.crt"),
        "private_key": _file(token_folder, "tls.key"),
        **folder,
    }
    trusted = {"trusted_ca": _file(token_folder, "ca.crt"), **folder}
    kind = any_of("envoy.extensions.transport_sockets.tls.v3.Secret")
    contents: dict[str, Json] = {
        _TOKEN: {"generic_secret": {"secret": _file(token_folder, "token")}},
        _CERTIFICATE: {"tls_certificate": certificate},
        _TRUSTED: {"validation_context": trusted},
    }
    # Envoy takes one secret per file.
    return {
        f"{name}.json": {"resources": [{**kind, "name": name, **content}]}
        for name, content in contents.items()
    }


def _file(folder: str, name: str) -> Json:
    return {"filename": f"{folder}/{name}"}


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


def _operator(
    address: str, port: int | str, token_folder: str, secret_folder: str, name: str | None
) -> Json:
    cluster = _static(XDS_CLUSTER, address, port)
    if name is not None:
        cluster["transport_socket"] = _mutual_tls(token_folder, secret_folder, name)
    cluster["typed_extension_protocol_options"] = {
        _PROTOCOL_OPTIONS: any_of(
            _PROTOCOL_OPTIONS,
            # One stream per connection: a connection to an operator that does not lead is not
            # reused.
            common_http_protocol_options={"max_requests_per_connection": 1},
            explicit_http_config={"http2_protocol_options": {"connection_keepalive": _PINGS}},
            http_filters=[
                _credential(token_folder, secret_folder),
                typed(
                    "envoy.filters.http.upstream_codec",
                    f"{_HTTP}.upstream_codec.v3.UpstreamCodec",
                ),
            ],
        )
    }
    return cluster


def _mutual_tls(folder: str, secret_folder: str, name: str) -> Json:
    """Build the transport: the operator is verified by its name; renewed files are read again."""
    tls = "envoy.extensions.transport_sockets.tls.v3"
    is_operator = {"san_type": "DNS", "matcher": {"exact": name}}
    return typed(
        "envoy.transport_sockets.tls",
        f"{tls}.UpstreamTlsContext",
        sni=name,
        # No session outlives the certificates that it began with.
        max_session_keys=0,
        common_tls_context={
            "tls_params": {
                f"tls_{one}_protocol_version": "TLSv1_3" for one in ("minimum", "maximum")
            },
            "tls_certificate_sds_secret_configs": [_sds(_CERTIFICATE, secret_folder, folder)],
            "combined_validation_context": {
                "default_validation_context": {"match_typed_subject_alt_names": [is_operator]},
                "validation_context_sds_secret_config": _sds(_TRUSTED, secret_folder, folder),
            },
        },
    )


_PINGS = {"interval": "10s", "timeout": "5s"}


def _stream() -> Json:
    """Build the aggregated stream, on which the operator sends only changes."""
    again = {"retry_back_off": {"base_interval": "0.1s", "max_interval": "1s"}}
    return {
        "api_type": "DELTA_GRPC",
        "transport_api_version": "V3",
        "set_node_on_first_message_only": True,
        "grpc_services": [{"envoy_grpc": {"cluster_name": XDS_CLUSTER, "retry_policy": again}}],
    }


def _credential(token_folder: str, secret_folder: str) -> Json:
    """Build the credential: the gateway's ServiceAccount token, reread when it is renewed."""
    generic = typed(
        "envoy.http.injected_credentials.generic",
        "envoy.extensions.http.injected_credentials.generic.v3.Generic",
        credential=_sds(_TOKEN, secret_folder, token_folder),
        header="authorization",
        header_value_prefix="Bearer ",
    )
    return typed(
        "envoy.filters.http.credential_injector",
        f"{_HTTP}.credential_injector.v3.CredentialInjector",
        credential=generic,
        overwrite=True,
    )


def _sds(name: str, secret_folder: str, token_folder: str) -> Json:
    source = {"path": f"{secret_folder}/{name}.json", "watched_directory": {"path": token_folder}}
    return {
        "name": name,
        "sds_config": {"resource_api_version": "V3", "path_config_source": source},
    }


def _ops(port: int) -> Json:
    """Build the port for kubelet, Prometheus and operator: three read-only pages."""
    routes: list[Json] = [
        {"match": {"path": path, "headers": [_GET]}, "route": {"cluster": cluster}}
        for path, cluster in (("/ready", "admin"), ("/stats/prometheus", "pages"))
    ]
    counted = {"cluster": "pages", "prefix_rewrite": access_counts.ADMIN_PATH}
    routes.append({"match": {"path": access_counts.PAGE, "headers": [_GET]}, "route": counted})
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
        http_filters=[typed("envoy.filters.http.router", f"{_HTTP}.router.v3.Router")],
    )
    return {
        "name": "ops",
        "address": _socket("0.0.0.0", port),  # noqa: S104  (the kubelet probes the pod's address)
        "ignore_global_conn_limit": True,
        "per_connection_buffer_limit_bytes": CONNECTION_BUFFER_BYTES,
        "socket_options": SOCKET_OPTIONS,
        "filter_chains": [{"filters": [manager]}],
    }


MAX_PAGES = 4
"""Pages of figures that are written at a time; each takes milliseconds, and further ones wait."""
_FEW = {"thresholds": [{"max_connections": MAX_PAGES}]}
_GET = {"name": ":method", "string_match": {"exact": "GET"}}


def _overload(heap_bytes: int | None) -> Json:
    """Build what bounds connections, and what happens when memory runs out all the same."""
    monitors = "envoy.extensions.resource_monitors"
    if heap_bytes is None:
        # What the kernel counts; the heap has pages that were never touched.
        memory = typed(
            "envoy.resource_monitors.cgroup_memory",
            f"{monitors}.cgroup_memory.v3.CgroupMemoryConfig",
        )
    else:
        memory = typed(
            "envoy.resource_monitors.fixed_heap",
            f"{monitors}.fixed_heap.v3.FixedHeapConfig",
            max_heap_size_bytes=heap_bytes,
        )
    scaled = {"scaling_threshold": RESET_FROM, "saturation_threshold": RESET_ALL}
    crowded = {"scaling_threshold": CROWDED_FROM, "saturation_threshold": CROWDED_ALL}
    closed = {"scaling_threshold": CLOSED_FROM, "saturation_threshold": CLOSED_ALL}
    connections = typed(
        "envoy.resource_monitors.global_downstream_max_connections",
        f"{monitors}.downstream_connections.v3.DownstreamConnectionsConfig",
        max_active_downstream_connections=MAX_CONNECTIONS,
    )
    return {
        "refresh_interval": "0.1s",
        "resource_monitors": [memory, connections],
        "actions": [
            {
                "name": "envoy.overload_actions.stop_accepting_requests",
                "triggers": [{"name": memory["name"], "threshold": {"value": REFUSED_FROM}}],
            },
            {
                "name": "envoy.overload_actions.reset_high_memory_stream",
                "triggers": [{"name": memory["name"], "scaled": scaled}],
            },
            {
                "name": "envoy.overload_actions.reduce_timeouts",
                "triggers": [{"name": connections["name"], "scaled": crowded}],
                "typed_config": any_of(
                    "envoy.config.overload.v3.ScaleTimersOverloadActionConfig",
                    timer_scale_factors=[
                        {
                            "timer": "HTTP_DOWNSTREAM_CONNECTION_IDLE",
                            "min_timeout": seconds(CROWDED_IDLE_S),
                        }
                    ],
                ),
            },
        ],
        "loadshed_points": [
            {
                "name": "envoy.load_shed_points.http2_server_go_away_and_close_on_dispatch",
                "triggers": [{"name": memory["name"], "scaled": closed}],
            }
        ],
        "buffer_factory_config": {"minimum_account_to_track_power_of_two": TRACKED_FROM_POWER},
    }


def _static(name: str, address: str, port: int | str) -> Json:
    hosts = [{"endpoint": {"address": _socket(address, port)}}]
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": seconds(0.5),
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": hosts}]},
    }


def _socket(address: str, port: int | str) -> Json:
    return {"socket_address": {"address": address, "port_value": port}}
