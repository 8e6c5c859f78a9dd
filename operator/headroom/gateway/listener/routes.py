"""Envoy's routes: which requests go to which cluster, with which deadline and retries."""

from __future__ import annotations

from collections.abc import Iterator

from headroom.gateway.bounds import BUFFERED_BYTES, UPGRADED_IDLE_S
from headroom.gateway.listener import model_routes
from headroom.gateway.listener.client_headers import CLASS, PRIORITY
from headroom.gateway.listener.request_bodies import (
    ANY_LENGTH,
    NO_BODY,
    NO_TUNNEL,
    UNBUFFERED,
    announced,
    bounded,
    streamed,
    too_large,
)
from headroom.gateway.listener.retries import (
    DEADLINE,
    GRPC_NOT_ANSWERED,
    GRPC_NOT_STARTED,
    IDEMPOTENT,
    NO_RETRY,
    NOT_ANSWERED,
    NOT_STARTED,
    deadline,
    retry_policy,
)
from headroom.gateway.type_urls import Json, seconds
from headroom.gateway.values import RequestClass, Route

UPGRADE = "websocket"
PROTOCOL = "x-headroom-protocol"
"""The protocol of the client's connection, set by the listeners of services with gRPC."""


def build(route: Route) -> Json:
    """Build the route table of a listener; the first match wins."""
    return {
        "name": route.key,
        "validate_clusters": False,
        "request_headers_to_remove": ["x-envoy-external-address", PROTOCOL, model_routes.HEADER],
        "response_headers_to_remove": [NO_RETRY],
        **model_routes.plugins(route),
        "virtual_hosts": [
            {
                "name": route.key,
                "domains": ["*"],
                "routes": [*_matches(route)],
                # Replicas count a retry of Envoy as such: x-envoy-attempt-count.
                "include_request_attempt_count": True,
            },
        ],
    }


def _matches(route: Route) -> Iterator[Json]:
    """Yield the routes of each class, then those of requests without a class."""
    yield NO_TUNNEL
    yield too_large(route)
    if route.max_upgrades:
        yield _upgrade(route)
    for kind in (*route.classes, None):
        for once in (True, False):
            if route.grpc_port is not None:
                yield _grpc(route, kind, once=once)
        if route.models:
            for one in _paths(route, kind, {"cluster_specifier_plugin": model_routes.PLUGIN}):
                one["match"].setdefault("headers", []).append(model_routes.NAMED)
                yield one
        yield from _paths(route, kind, _shares(route))


def _shares(route: Route) -> Json:
    """Route to the service's own replicas, or in shares to other services as well."""
    if not route.split:
        return {"cluster": route.key}
    own = 100 - sum(weight for _, weight in route.split)
    shares = [(route.key, own), *route.split]
    return {"weighted_clusters": {"clusters": [{"name": k, "weight": w} for k, w in shares]}}


def _paths(route: Route, kind: RequestClass | None, where: Json) -> Iterator[Json]:
    """Yield the routes of a class: of bodies that are streamed, and of those received whole."""
    if route.grpc_port is not None:
        for known in (ANY_LENGTH, NO_BODY):
            yield streamed(_http(route, kind, where, once=None), _IS_HTTP2, known)
        headers = [*_only(kind, once=False).get("headers", ()), _IS_HTTP2]
        yield {
            "match": {"prefix": "/", "headers": headers},
            "direct_response": {"status": 411},
            **UNBUFFERED,
        }
    if route.max_body_bytes > BUFFERED_BYTES:
        yield streamed(_http(route, kind, where, once=None), announced(BUFFERED_BYTES))
    for once in (True, False):
        yield bounded(route, _http(route, kind, where, once=once))


_IS_HTTP2: Json = {"name": PROTOCOL, "string_match": {"exact": "HTTP/2"}}
"""A connection of HTTP/2 has many requests: none of them may wait for its body without a place."""


def _upgrade(route: Route) -> Json:
    """Let WebSockets through, within their own bound and for as long as a request may last."""
    headers = [
        {"name": ":method", "string_match": {"exact": "GET"}},
        {"name": "upgrade", "string_match": {"exact": UPGRADE, "ignore_case": True}},
    ]
    return {
        "match": {"prefix": "/", "headers": headers},
        "route": {
            "cluster": route.upgrade_key,
            **deadline(route, None),
            "idle_timeout": seconds(min(UPGRADED_IDLE_S, route.timeout_s)),
            "upgrade_configs": [{"upgrade_type": UPGRADE, "enabled": True}],
        },
    }


def _http(route: Route, kind: RequestClass | None, where: Json, *, once: bool | None) -> Json:
    """Build a route of requests that may run once, that may run twice, or, with None, of both."""
    retry_on = NOT_ANSWERED if once is False else NOT_STARTED
    action = {
        **where,
        **deadline(route, kind),
        **retry_policy(route, retry_on, once=once is not False),
    }
    return {
        "match": {"prefix": "/", **_only(kind, once=once is True)},
        "route": action,
        **_of_class(kind),
    }


def _grpc(route: Route, kind: RequestClass | None, *, once: bool) -> Json:
    """Route gRPC calls: the body is not buffered, since a call may stream."""
    return {
        "match": {"prefix": "/", "grpc": {}, **_only(kind, once=once)},
        "route": {
            "cluster": route.grpc_key,
            **deadline(route, kind),
            **retry_policy(route, GRPC_NOT_STARTED if once else GRPC_NOT_ANSWERED, once=once),
        },
        **UNBUFFERED,
        **_of_class(kind),
    }


def _only(kind: RequestClass | None, *, once: bool) -> Json:
    headers = []
    if once:
        headers.append(
            {"name": IDEMPOTENT, "string_match": {"exact": "false", "ignore_case": True}}
        )
    if kind is not None:
        headers.append({"name": CLASS, "string_match": {"exact": kind.name}})
    return {"headers": headers} if headers else {}


def _of_class(kind: RequestClass | None) -> Json:
    """Set the headers of a class for the replicas."""
    headers = []
    if kind is not None and kind.priority is not None:
        headers.append(_header(PRIORITY, str(kind.priority), "OVERWRITE_IF_EXISTS_OR_ADD"))
    if kind is not None and kind.deadline_s is not None:
        headers.append(_header(DEADLINE, f"{kind.deadline_s:g}", "ADD_IF_ABSENT"))
    return {"request_headers_to_add": headers} if headers else {}


def _header(name: str, value: str, action: str) -> Json:
    return {"header": {"key": name, "value": value}, "append_action": action}
