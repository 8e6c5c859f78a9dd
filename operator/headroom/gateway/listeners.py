"""Where a service's requests come in: Envoy's listener, one port for each service.

A port instead of a host name: clients call a service by its short or its long name, by address, or
by a name of their own, and all of it is right.
"""

from __future__ import annotations

from headroom.gateway import refusals, routes
from headroom.gateway.type_urls import LISTENER, Json, seconds, typed
from headroom.gateway.values import Route

ALL_ADDRESSES = "0.0.0.0"  # noqa: S104  (a gateway is reached at its pod's address)
HEADERS_WITHIN_S = 10.0
BODY_WITHIN_S = 60.0
IDLE_CONNECTION_S = 600.0
MAX_HEADERS = 100
MAX_HEADERS_KIB = 60
MAX_STREAMS = 1024
CONNECTION_BUFFER_BYTES = 1 << 18
"""Per connection and direction, where no body is being collected."""

_HTTP = "envoy.extensions.filters.http"


def build(route: Route) -> Json:
    """Build the listener of a service."""
    return {
        "@type": LISTENER,
        "name": route.key,
        "address": {"socket_address": {"address": ALL_ADDRESSES, "port_value": route.port}},
        "per_connection_buffer_limit_bytes": CONNECTION_BUFFER_BYTES,
        "filter_chains": [{"filters": [_connection_manager(route)]}],
    }


def _connection_manager(route: Route) -> Json:
    streams = route.grpc_port is not None
    return typed(
        "envoy.filters.network.http_connection_manager",
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix=route.key,
        route_config=routes.build(route),
        http_filters=[_deadline(), _body(route), _router()],
        upgrade_configs=[{"upgrade_type": "websocket", "filters": [_router()]}],
        common_http_protocol_options={
            "idle_timeout": seconds(IDLE_CONNECTION_S),
            "max_headers_count": MAX_HEADERS,
        },
        max_request_headers_kb=MAX_HEADERS_KIB,
        request_headers_timeout=seconds(HEADERS_WITHIN_S),
        # A call that streams may send for as long as it lasts.
        request_timeout=seconds(route.timeout_s if streams else BODY_WITHIN_S),
        stream_idle_timeout=seconds(route.timeout_s),
        http2_protocol_options={
            "max_concurrent_streams": MAX_STREAMS,
            "initial_stream_window_size": 1 << 16,
            "initial_connection_window_size": 1 << 20,
            "allow_connect": True,
        },
        # What a client says of itself is not believed, wherever it is: its x-envoy- headers, which
        # would set retries and timeouts, are dropped.
        use_remote_address=True,
        server_header_transformation="PASS_THROUGH",
        generate_request_id=False,
        local_reply_config=refusals.build(),
    )


def _deadline() -> Json:
    """Have Envoy enforce the deadline that a request names, in seconds as the replicas read it.

    Envoy itself knows grpc-timeout, which says the same in milliseconds; with it the route is
    looked up anew. What a replica would refuse is left to it.
    """
    return typed(
        "envoy.filters.http.lua",
        f"{_HTTP}.lua.v3.Lua",
        default_source_code={"inline_string": _DEADLINE_TO_GRPC},
    )


_DEADLINE_TO_GRPC = f"""
function envoy_on_request(handle)
  local headers = handle:headers()
  local seconds = tonumber(headers:get("{routes.DEADLINE}") or "")
  if seconds and seconds > 0 and seconds <= 86400 then
    headers:replace("{routes.GRPC_DEADLINE}", string.format("%dm", math.ceil(seconds * 1000)))
  end
end
"""


def _body(route: Route) -> Json:
    """Collect a body before a replica gets it: a slow client takes none of its time."""
    return typed(
        routes.BODY_FILTER, f"{_HTTP}.buffer.v3.Buffer", max_request_bytes=route.max_body_bytes
    )


def _router() -> Json:
    return typed(
        "envoy.filters.http.router", f"{_HTTP}.router.v3.Router", suppress_envoy_headers=True
    )
