"""What becomes of a request: which cluster, how long, and whether it is tried once more.

A try is repeated once, on another replica, where the replica refused it (429, 503), could not be
reached, or ended the connection before it answered. A model's answer changes nothing, so it may be
computed twice; a request that says otherwise (`x-headroom-idempotent: false`) is repeated only
where no replica can have begun with it.
"""

from __future__ import annotations

from headroom.gateway.type_urls import Json, any_of, seconds
from headroom.gateway.values import Route

DEADLINE = "x-request-timeout"
"""Seconds, from arrival, after which the client no longer wants an answer."""
GRPC_DEADLINE = "grpc-timeout"
"""The same, as gRPC writes it, and as Envoy enforces it."""
IDEMPOTENT = "x-headroom-idempotent"
NOT_TRIED_AGAIN = "x-envoy-ratelimited"
"""An answer with this header is passed on and not tried once more, whatever its status."""
BODY_FILTER = "envoy.filters.http.buffer"

REFUSED = (429, 503)
"""Statuses with which a replica says that it has not begun."""
NOT_BEGUN = "connect-failure,refused-stream,reset-before-request,retriable-status-codes"
NOT_ANSWERED = f"{NOT_BEGUN},reset"
GRPC_NOT_BEGUN = (
    "connect-failure,refused-stream,reset-before-request,unavailable,resource-exhausted"
)
GRPC_NOT_ANSWERED = f"{GRPC_NOT_BEGUN},reset"
ANOTHER_HOST_ATTEMPTS = 30


def build(route: Route) -> Json:
    """Build the table of a listener; the first match wins."""
    matches = []
    if route.grpc_port is not None:
        matches += [_grpc(route, once=True), _grpc(route, once=False)]
    matches += [_http(route, once=True), _http(route, once=False)]
    return {
        "name": route.key,
        "validate_clusters": False,
        "request_headers_to_remove": ["x-envoy-external-address"],
        "response_headers_to_remove": [NOT_TRIED_AGAIN],
        "virtual_hosts": [{"name": route.key, "domains": ["*"], "routes": matches}],
    }


def _http(route: Route, *, once: bool) -> Json:
    return {
        "match": {"prefix": "/", **_only(once=once)},
        "route": {
            "cluster": route.key,
            **_limits(route),
            "retry_policy": _retries(route, NOT_BEGUN if once else NOT_ANSWERED),
        },
    }


def _grpc(route: Route, *, once: bool) -> Json:
    """A call may stream, so its body is not collected; its deadline is grpc-timeout."""
    return {
        "match": {"prefix": "/", "grpc": {}, **_only(once=once)},
        "route": {
            "cluster": route.grpc_key,
            **_limits(route),
            "retry_policy": _retries(route, GRPC_NOT_BEGUN if once else GRPC_NOT_ANSWERED),
        },
        "typed_per_filter_config": {
            BODY_FILTER: any_of(
                "envoy.extensions.filters.http.buffer.v3.BufferPerRoute", disabled=True
            )
        },
    }


def _limits(route: Route) -> Json:
    """End a request at its deadline; Envoy's own timeout of a try would blame the replica."""
    longest = seconds(route.timeout_s)
    return {
        "timeout": "0s",
        "max_stream_duration": {
            "max_stream_duration": longest,
            "grpc_timeout_header_max": longest,
        },
    }


def _only(*, once: bool) -> Json:
    if not once:
        return {}
    header = {"name": IDEMPOTENT, "string_match": {"exact": "false", "ignore_case": True}}
    return {"headers": [header]}


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
        # Long enough for a replica that failed to be left out.
        "retry_back_off": {"base_interval": "0.025s", "max_interval": "0.05s"},
    }
    if route.per_try_timeout_s is not None:
        policy["per_try_timeout"] = seconds(route.per_try_timeout_s)
    return policy
