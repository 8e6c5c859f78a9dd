"""Type names of Envoy's v3 API and helpers for its JSON form."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

_ROOT = "type.googleapis.com/"

LISTENER = f"{_ROOT}envoy.config.listener.v3.Listener"
CLUSTER = f"{_ROOT}envoy.config.cluster.v3.Cluster"
ENDPOINTS = f"{_ROOT}envoy.config.endpoint.v3.ClusterLoadAssignment"
RUNTIME = f"{_ROOT}envoy.service.runtime.v3.Runtime"
HTTP_FILTERS = "envoy.extensions.filters.http"
"""Begins the type names of HTTP filters."""


def typed(name: str, type_url: str, **fields: Any) -> Json:
    """Return a named extension with its configuration."""
    return {"name": name, "typed_config": any_of(type_url, **fields)}


def any_of(type_url: str, **fields: Any) -> Json:
    """Return a message as Any; `type_url` without its root."""
    return {"@type": f"{_ROOT}{type_url}", **fields}


def seconds(value: float) -> str:
    """Format a duration for JSON, with millisecond precision."""
    return f"{value:.3f}".rstrip("0").rstrip(".") + "s"


XDS_CLUSTER = "headroom-operator"
INITIAL_FETCH_S = 5.0
"""Timeout after which a gateway starts without the operator."""

FROM_OPERATOR: Json = {
    "resource_api_version": "V3",
    "initial_fetch_timeout": seconds(INITIAL_FETCH_S),
    "ads": {},
}
"""Config source: the operator's aggregated stream."""
