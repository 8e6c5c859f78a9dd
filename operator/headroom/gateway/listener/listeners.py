"""Envoy's listeners: one port per service.

Services are distinguished by port instead of host name, so that clients may use a service's short
or long name, its address, or any other name.
"""

from __future__ import annotations

from typing import Any

from headroom.gateway import bounds
from headroom.gateway.listener import (
    access_counts,
    client_headers,
    client_tokens,
    local_replies,
    model_routes,
    request_bodies,
    request_deadlines,
    routes,
    tenant_in_flight,
    tenant_rates,
)
from headroom.gateway.type_urls import HTTP_FILTERS, LISTENER, Json, seconds, typed
from headroom.gateway.values import Route

ALL_ADDRESSES = "0.0.0.0"  # noqa: S104  (clients connect to the pod's address)
HEADERS_WITHIN_S = 3.0
"""From the first byte of a request on. A head is sent at once, and arrives within this also if it
is lost three times; Envoy shortens only the time of idle connections when these are few. So one
client that begins the heads of all connections of a service locks its others out for so long."""
BODY_WITHIN_S = 60.0
READ_WITHIN_S = 10.0
"""Time in which a client of HTTP/2 must take the rest of an answer, which waits here as a whole:
it has no place in flight any more."""
IDLE_CONNECTION_S = 600.0
NEVER_S = 0.0
"""Envoy's way to say that an idle connection is not ended: those to an internal listener are ended
by their gate alone. Ended here, one could carry a request already, which would be lost."""
MAX_HEADERS = 100


def build(route: Route) -> list[Json]:
    """Build the listener of a service; with tenant shares, an outer and an internal one."""
    address = {"socket_address": {"address": ALL_ADDRESSES, "port_value": route.port}}
    filters = [*model_routes.filters(route), *request_deadlines.filters(), _body()]
    service = {
        "stat_prefix": route.key,
        "access_log": access_counts.access_log(route.key),
        "local_reply_config": local_replies.build(),
    }
    if not tenant_in_flight.apply(route):

        def chain(known: Route, header: str, settings: Json) -> Json:
            # Clients are never trusted: their x-envoy- headers, which would set retries and
            # timeouts, are dropped.
            table = {"route_config": routes.build(known)}
            outside = service | table | {"use_remote_address": True} | settings
            identity = _identity(route, header)
            return _chain(route, outside, [*identity, *filters], identity)

        return [_listener(route.key, client_headers.chains(route, chain), **_outer(address))]

    def gated(_: Route, header: str, settings: Json) -> Json:
        outside = tenant_in_flight.front(route, header) | {"use_remote_address": True} | settings
        identity = _identity(route, header)
        return _chain(route, outside, identity, identity)

    within = service | {"use_remote_address": False, "skip_xff_append": True}
    within["route_config"] = routes.build(route)
    inner = {"filter_chains": [_chain(route, within, filters, [], idle_s=NEVER_S)]}
    return [
        _listener(route.key, client_headers.chains(route, gated), **_outer(address)),
        _listener(tenant_in_flight.inside(route), inner, internal_listener={}),
    ]


def _identity(route: Route, header: str) -> list[Json]:
    """Build the filters that find a request's tenant and limit its rate."""
    return [*client_tokens.build(route), *tenant_rates.build(route, header)]


def _outer(address: Json) -> Json:
    """Return the address and the small kernel buffers of a listener for clients."""
    return {"address": address, "socket_options": bounds.SOCKET_OPTIONS}


def _listener(name: str, chains: Json, **where: Any) -> Json:
    return {
        "@type": LISTENER,
        "name": name,
        **where,
        "per_connection_buffer_limit_bytes": bounds.CONNECTION_BUFFER_BYTES,
        **chains,
    }


def _chain(
    route: Route,
    manager: Json,
    filters: list[Json],
    upgraded: list[Json],
    idle_s: float = IDLE_CONNECTION_S,
) -> Json:
    return {"filters": [_connection_manager(route, manager, filters, upgraded, idle_s)]}


def _connection_manager(
    route: Route, manager: Json, filters: list[Json], upgraded: list[Json], idle_s: float
) -> Json:
    streams = route.grpc_port is not None
    return typed(
        "envoy.filters.network.http_connection_manager",
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        **(_with_protocol_header(manager) if streams else manager),
        http_filters=[*filters, _router()],
        # Only HTTP/2 multiplies what one connection may hold.
        codec_type="AUTO" if streams else "HTTP1",
        **_upgrades(route, upgraded),
        common_http_protocol_options={
            "idle_timeout": seconds(idle_s),
            "max_headers_count": MAX_HEADERS,
        },
        max_request_headers_kb=bounds.MAX_HEADERS_KIB,
        request_headers_timeout=seconds(HEADERS_WITHIN_S),
        # A streaming call may send as long as it lasts.
        request_timeout=seconds(route.timeout_s if streams else BODY_WITHIN_S),
        stream_idle_timeout=seconds(route.timeout_s),
        stream_flush_timeout=seconds(READ_WITHIN_S),
        http2_protocol_options={
            "max_concurrent_streams": bounds.STREAMS_PER_CONNECTION,
            "initial_stream_window_size": bounds.STREAM_WINDOW_BYTES,
            "initial_connection_window_size": bounds.CONNECTION_WINDOW_BYTES,
        },
        server_header_transformation="PASS_THROUGH",
        generate_request_id=False,
    )


def _with_protocol_header(manager: Json) -> Json:
    """Set the header of the protocol before routes are chosen, besides the changes of `manager`."""
    header = {"key": routes.PROTOCOL, "value": "%PROTOCOL%"}
    mutation = {"append": {"header": header, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}}
    known = manager.get(client_headers.EARLY, [])
    return manager | {client_headers.EARLY: [*known, client_headers.mutation(mutation)]}


def _upgrades(route: Route, filters: list[Json]) -> Json:
    """Let the routes that say so upgrade, behind the same limits; no other request may."""
    if not route.max_upgrades:
        return {}
    chain = [*filters, _router()]
    return {
        "upgrade_configs": [{"upgrade_type": routes.UPGRADE, "filters": chain, "enabled": False}]
    }


def _body() -> Json:
    """Receive a small body whole before it is forwarded: a slow client takes no place in flight.

    `routes.py` excludes the larger ones, which are announced and streamed.
    """
    return typed(
        request_bodies.BODY_FILTER,
        f"{HTTP_FILTERS}.buffer.v3.Buffer",
        max_request_bytes=bounds.BUFFERED_BYTES,
    )


def _router() -> Json:
    return typed(
        "envoy.filters.http.router", f"{HTTP_FILTERS}.router.v3.Router", suppress_envoy_headers=True
    )
