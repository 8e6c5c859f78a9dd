"""Names that Envoy's v3 API gives its types, and how they are written in JSON."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

_ROOT = "type.googleapis.com/"

LISTENER = f"{_ROOT}envoy.config.listener.v3.Listener"
CLUSTER = f"{_ROOT}envoy.config.cluster.v3.Cluster"
ENDPOINTS = f"{_ROOT}envoy.config.endpoint.v3.ClusterLoadAssignment"
RUNTIME = f"{_ROOT}envoy.service.runtime.v3.Runtime"


def typed(name: str, type_url: str, **fields: Any) -> Json:
    """Name an extension and configure it."""
    return {"name": name, "typed_config": any_of(type_url, **fields)}


def any_of(type_url: str, **fields: Any) -> Json:
    """Write a message where any may stand; `type_url` without its root."""
    return {"@type": f"{_ROOT}{type_url}", **fields}


def seconds(value: float) -> str:
    """Write a duration as JSON knows it; exact to a millisecond."""
    return f"{value:.3f}".rstrip("0").rstrip(".") + "s"


XDS_CLUSTER = "headroom-operator"
INITIAL_FETCH_S = 5.0
"""After which a gateway begins with what it has."""

FROM_OPERATOR: Json = {
    "resource_api_version": "V3",
    "initial_fetch_timeout": seconds(INITIAL_FETCH_S),
    "ads": {},
}
"""Where a resource comes from: the one stream from the operator."""
