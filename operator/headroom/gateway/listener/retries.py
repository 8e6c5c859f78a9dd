"""The deadline of a request, and when the gateway tries it again.

A request is retried once, on another replica, if the first replica rejected it (429, 503), was
unreachable, or closed the connection before it answered. Inference has no side effects, so a
request may run twice; with `x-headroom-idempotent: false` it is retried only if no replica can have
started it.
"""

from __future__ import annotations

from headroom.gateway.type_urls import Json, any_of, seconds
from headroom.gateway.values import RequestClass, Route

DEADLINE = "x-request-timeout"
"""The request's deadline in seconds from its arrival."""
GRPC_DEADLINE = "grpc-timeout"
"""The deadline in gRPC's format, which Envoy enforces."""
IDEMPOTENT = "x-headroom-idempotent"
NO_RETRY = "x-envoy-ratelimited"
"""An answer with this header is not retried, whatever its status."""

REFUSED = (429, 503)
"""Statuses of requests that the replica has not started."""
NOT_STARTED = "connect-failure,refused-stream,reset-before-request,retriable-status-codes"
NOT_ANSWERED = f"{NOT_STARTED},reset"
GRPC_NOT_STARTED = (
    "connect-failure,refused-stream,reset-before-request,unavailable,resource-exhausted"
)
GRPC_NOT_ANSWERED = f"{GRPC_NOT_STARTED},reset"
ANOTHER_HOST_ATTEMPTS = 30


def deadline(route: Route, kind: RequestClass | None) -> Json:
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


def retry_policy(route: Route, retry_on: str, *, once: bool) -> Json:
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
