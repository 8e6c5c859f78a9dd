"""Envoy's routes: cluster, deadline and retries of a request.

A request is retried once, on another replica, if the first replica rejected it (429, 503), was
unreachable, or closed the connection before it answered. Inference has no side effects, so a
request may run twice; with `x-headroom-idempotent: false` it is retried only if no replica can have
started it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from headroom.gateway.type_urls import Json, any_of, seconds
from headroom.gateway.values import RequestClass, Route

DEADLINE = "x-request-timeout"
"""The request's deadline in seconds from its arrival."""
GRPC_DEADLINE = "grpc-timeout"
"""The deadline in gRPC's format, which Envoy enforces."""
IDEMPOTENT = "x-headroom-idempotent"
CLASS = "x-slo-class"
PRIORITY = "x-request-priority"
"""The request's priority for the model server; 0 is the highest."""
NO_RETRY = "x-envoy-ratelimited"
"""An answer with this header is not retried, whatever its status."""
BODY_FILTER = "envoy.filters.http.buffer"

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
        "request_headers_to_remove": ["x-envoy-external-address"],
        "response_headers_to_remove": [NO_RETRY],
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
    for kind in (*route.classes, None):
        for once in (True, False):
            if route.grpc_port is not None:
                yield _grpc(route, kind, once=once)
        for model, key in route.models:
            for once in (True, False):
                path = {"safe_regex": {"regex": _MODEL_PATH.format(re.escape(model))}}
                yield _http(route, kind, path, {"cluster": key}, once=once)
        for once in (True, False):
            yield _http(route, kind, {"prefix": "/"}, _shares(route), once=once)


_MODEL_PATH = r"/v[12]/models/{}([:/].*)?"


def _shares(route: Route) -> Json:
    """Route to the service's own replicas, or in shares to other services as well."""
    if not route.split:
        return {"cluster": route.key}
    own = 100 - sum(weight for _, weight in route.split)
    shares = [(route.key, own), *route.split]
    return {"weighted_clusters": {"clusters": [{"name": k, "weight": w} for k, w in shares]}}


def _http(route: Route, kind: RequestClass | None, path: Json, where: Json, *, once: bool) -> Json:
    action = {
        **where,
        **_limits(route, kind),
        **_retry_policy(route, NOT_STARTED if once else NOT_ANSWERED, once=once),
    }
    return {
        "match": {**path, **_only(kind, once=once)},
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
        "typed_per_filter_config": {
            BODY_FILTER: any_of(
                "envoy.extensions.filters.http.buffer.v3.BufferPerRoute", disabled=True
            )
        },
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
