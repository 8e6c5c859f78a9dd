"""The Service, port 80, and its backends.

The backends are all ready, that is warm, replicas; in Gateway mode a gateway, while the replicas
have a headless Service. Name, address and port stay the same for clients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headroom.resources import names

if TYPE_CHECKING:
    from headroom.api import InferenceService


def build(service: InferenceService) -> dict[str, Any]:
    """Build the Service of the replicas. It balances connections, not requests."""
    return _service(names.metadata(service), names.selector_labels(service.name))


def build_routed(service: InferenceService) -> dict[str, Any]:
    """Build the Service of a gateway.

    Its selector matches no pod; its EndpointSlice has the gateway's address. A Service without any
    selector would keep the slices of its previous selector.
    """
    return _service(names.metadata(service), {names.ROUTED_LABEL: "gateway"})


def build_replicas(service: InferenceService) -> dict[str, Any]:
    """Build the headless Service of the replicas."""
    metadata = names.metadata(service)
    metadata["name"] = names.replicas_service(service.name)
    manifest = _service(metadata, names.selector_labels(service.name))
    manifest["spec"]["clusterIP"] = "None"
    return manifest


def _service(metadata: dict[str, Any], selector: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "type": "ClusterIP",
            "selector": selector,
            "ports": [
                {
                    "name": names.PORT_NAME,
                    "port": names.SERVICE_PORT,
                    "targetPort": names.PORT_NAME,
                    "protocol": "TCP",
                    "appProtocol": "http",
                }
            ],
        },
    }
