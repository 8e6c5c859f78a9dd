"""Bodies of requests: received whole, streamed or refused.

A body of up to `BUFFERED_BYTES` is received whole before the request takes a place in flight. A
larger one has to be announced (`content-length`) and is streamed: whatever its size, it takes a few
kilobytes of the gateway. It is counted by the cluster's second bound (Envoy's priority HIGH), so
that unfinished uploads never take the places of small requests, and it is not retried once a
replica can have started it.
"""

from __future__ import annotations

from headroom.gateway.bounds import BUFFERED_BYTES
from headroom.gateway.type_urls import Json, any_of
from headroom.gateway.values import Route

BODY_FILTER = "envoy.filters.http.buffer"
_MOST = 1 << 62
_BUFFER = "envoy.extensions.filters.http.buffer.v3.BufferPerRoute"
UNBUFFERED: Json = {"typed_per_filter_config": {BODY_FILTER: any_of(_BUFFER, disabled=True)}}

ANY_LENGTH: Json = {"name": "content-length", "present_match": True}
NO_BODY: Json = {"name": ":method", "string_match": {"safe_regex": {"regex": "GET|HEAD"}}}
NO_TUNNEL: Json = {
    "match": {"connect_matcher": {}},
    "direct_response": {"status": 405},
    **UNBUFFERED,
}
"""The body of a CONNECT never ends: it would be received for as long as one may."""


def announced(above: int) -> Json:
    """Match a request that announces a body above a size."""
    return {"name": "content-length", "range_match": {"start": above + 1, "end": _MOST}}


def too_large(route: Route) -> Json:
    """Refuse a body by its announced length, before any of it is received.

    Whatever is no number within the bound, which Envoy compares in 64 bits: 2^63 is none for it.
    """
    within = {
        "name": "content-length",
        "range_match": {"start": 0, "end": route.max_body_bytes + 1},
    }
    return {
        "match": {"prefix": "/", "headers": [ANY_LENGTH, within | {"invert_match": True}]},
        "direct_response": {"status": 413},
        **UNBUFFERED,
    }


def streamed(http: Json, *headers: Json) -> Json:
    """Stream the bodies of a route that also matches these headers."""
    http["match"].setdefault("headers", []).extend(headers)
    http["route"]["priority"] = "HIGH"
    return {**http, **UNBUFFERED}


def bounded(route: Route, http: Json) -> Json:
    """Lower the bound of buffered bodies, where the service has a lower one."""
    if route.max_body_bytes >= BUFFERED_BYTES:
        return http
    bound = {"buffer": {"max_request_bytes": route.max_body_bytes}}
    return {**http, "typed_per_filter_config": {BODY_FILTER: any_of(_BUFFER, **bound)}}
