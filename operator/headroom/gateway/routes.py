"""Envoy's routes: cluster, deadline and retries of a request.

A request is retried once, on another replica, if the first replica rejected it (429, 503), was
unreachable, or closed the connection before it answered. Inference has no side effects, so a
request may run twice; with `x-headroom-idempotent: false` it is retried only if no replica can have
started it.

A body of up to `BUFFERED_BYTES` is received whole before the request takes a place in flight. A
larger one has to be announced (`content-length`) and is streamed: whatever its size, it takes a few
kilobytes of the gateway. It is counted by the cluster's second bound (Envoy's priority HIGH), so
that unfinished uploads never take the places of small requests, and it is not retried once a
replica can have started it.
"""

from __future__ import annotations

from collections.abc import Iterator

from headroom.gateway import model_routes
from headroom.gateway.bounds import BUFFERED_BYTES, UPGRADED_IDLE_S
from headroom.gateway.client_headers import CLASS, PRIORITY
from headroom.gateway.type_urls import Json, any_of, seconds
from headroom.gateway.values import RequestClass, Route

DEADLINE = "x-request-timeout"
"""The request's deadline in seconds from its arrival."""
GRPC_DEADLINE = "grpc-timeout"
"""The deadline in gRPC's format, which Envoy enforces."""
IDEMPOTENT = "x-headroom-idempotent"
NO_RETRY = "x-envoy-ratelimited"
"""An answer with this header is not retried, whatever its status."""
BODY_FILTER = "envoy.filters.http.buffer"
UPGRADE = "websocket"
PROTOCOL = "x-headroom-protocol"
"""The protocol of the client's connection, set by the listeners of services with gRPC."""
_MOST = 1 << 62
_BUFFER = "envoy.extensions.filters.http.buffer.v3.BufferPerRoute"
_UNBUFFERED: Json = {"typed_per_filter_config": {BODY_FILTER: any_of(_BUFFER, disabled=True)}}

REFUSED = (429, 503)
"""Statuses of requests that the replica has not started."""
NOT_STARTED = "connect-failure,refused-stream,reset-before-request,retriable-status-codes"
NOT_ANSWERED = f"{NOT_STARTED},reset"
GRPC_NOT_STARTED = (
    "connect-failure,refused-stream,reset-before-request,unavailable,resource-exhausted"
)
GRPC_NOT_ANSWERED = f"{GRPC_NOT_STARTED},reset"
ANOTHER_HOST_ATTEMPTS = 30


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
                # Replicas count a further try of ours as such: x-envoy-attempt-count.
                "include_request_attempt_count": True,
            },
        ],
    }


def _matches(route: Route) -> Iterator[Json]:
    """Yield the routes of each class, then those of requests without a class."""
    yield _NO_TUNNEL
    yield _too_large(route)
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
        for known in (_ANY_LENGTH, _NO_BODY):
            yield _streamed(_http(route, kind, where, once=None), _IS_HTTP2, known)
        headers = [*_only(kind, once=False).get("headers", ()), _IS_HTTP2]
        yield {
            "match": {"prefix": "/", "headers": headers},
            "direct_response": {"status": 411},
            **_UNBUFFERED,
        }
    if route.max_body_bytes > BUFFERED_BYTES:
        yield _streamed(_http(route, kind, where, once=None), _announced(BUFFERED_BYTES))
    for once in (True, False):
        yield _small(route, _http(route, kind, where, once=once))


_IS_HTTP2: Json = {"name": PROTOCOL, "string_match": {"exact": "HTTP/2"}}
"""A connection of HTTP/2 has many requests: none of them may wait for its body without a place."""
_ANY_LENGTH: Json = {"name": "content-length", "present_match": True}
_NO_BODY: Json = {"name": ":method", "string_match": {"safe_regex": {"regex": "GET|HEAD"}}}


def _announced(above: int) -> Json:
    return {"name": "content-length", "range_match": {"start": above + 1, "end": _MOST}}


def _too_large(route: Route) -> Json:
    """Refuse a body by what it announces, before any of it is received.

    Whatever is no number within the bound, which Envoy compares in 64 bits: 2^63 is none for it.
    """
    within = {
        "name": "content-length",
        "range_match": {"start": 0, "end": route.max_body_bytes + 1},
    }
    return {
        "match": {"prefix": "/", "headers": [_ANY_LENGTH, within | {"invert_match": True}]},
        "direct_response": {"status": 413},
        **_UNBUFFERED,
    }


_NO_TUNNEL: Json = {
    "match": {"connect_matcher": {}},
    "direct_response": {"status": 405},
    **_UNBUFFERED,
}
"""The body of a CONNECT never ends: it would be received for as long as one may."""


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
            **_limits(route, None),
            "idle_timeout": seconds(min(UPGRADED_IDLE_S, route.timeout_s)),
            "upgrade_configs": [{"upgrade_type": UPGRADE, "enabled": True}],
        },
    }


def _streamed(http: Json, *headers: Json) -> Json:
    http["match"].setdefault("headers", []).extend(headers)
    http["route"]["priority"] = "HIGH"
    return {**http, **_UNBUFFERED}


def _small(route: Route, http: Json) -> Json:
    """Lower the bound of what is received whole, where the service has a lower one."""
    if route.max_body_bytes >= BUFFERED_BYTES:
        return http
    bound = {"buffer": {"max_request_bytes": route.max_body_bytes}}
    return {**http, "typed_per_filter_config": {BODY_FILTER: any_of(_BUFFER, **bound)}}


def _http(route: Route, kind: RequestClass | None, where: Json, *, once: bool | None) -> Json:
    """Build a route of requests that may run once, that may run twice, or, with None, of both."""
    retry_on = NOT_ANSWERED if once is False else NOT_STARTED
    action = {
        **where,
        **_limits(route, kind),
        **_retry_policy(route, retry_on, once=once is not False),
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
            **_limits(route, kind),
            **_retry_policy(route, GRPC_NOT_STARTED if once else GRPC_NOT_ANSWERED, once=once),
        },
        **_UNBUFFERED,
        **_of_class(kind),
    }


def _limits(route: Route, kind: RequestClass | None) -> Json:
    """Set the deadline of a request; Envoy's timeout per attempt would blame the replica."""
    longest = seconds(route.timeout_s)
    usual = kind.deadline_s if kind and kind.deadline_s is not None else route.timeout_s
    return {
        "timeout": "0s",
        "max_stream_duration": {
            "max_stream_duration": seconds(usual),
            "grpc_timeout_header_max": longest,
        },
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


def _retry_policy(route: Route, retry_on: str, *, once: bool) -> Json:
    """Retry after a failure; with hedging also while the first attempt continues."""
    retries = _retries(route, retry_on)
    if route.hedge is None or once:
        return {"retry_policy": retries}
    retries["per_try_timeout"] = seconds(route.hedge.after_s)
    return {"retry_policy": retries, "hedge_policy": {"hedge_on_per_try_timeout": True}}


def _retries(route: Route, retry_on: str) -> Json:
    policy: Json = {
        "retry_on": retry_on,
        "num_retries": 1,
        "retriable_status_codes": list(REFUSED),
        "retry_host_predicate": [
            {
                "name": "envoy.retry_host_predicates.previous_hosts",
                "typed_config": any_of(
                    "envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"
                ),
            }
        ],
        "host_selection_retry_max_attempts": ANOTHER_HOST_ATTEMPTS,
        # A random delay of up to this gives time to eject a failed replica. Until then it has the
        # fewest requests in flight, and `previous_hosts` fails to select another one.
        "retry_back_off": {"base_interval": "0.15s", "max_interval": "0.15s"},
    }
    if route.per_try_timeout_s is not None:
        policy["per_try_timeout"] = seconds(route.per_try_timeout_s)
    return policy
