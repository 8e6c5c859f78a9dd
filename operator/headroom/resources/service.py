"""The Service for clients, and its backends.

The backends are all ready, that is warm, replicas; in Gateway mode a gateway, while the replicas
have a headless Service. Name, address and port stay the same for clients. A targetRef gets an
additional Service, next to those of the target's creator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headroom.api.service_spec.routing import SERVICE_PORT
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
    return build_for_clients(service, {names.ROUTED_LABEL: "gateway"})


def build_for_clients(
    service: InferenceService, selector: Mapping[str, str], name: str = ""
) -> dict[str, Any]:
    """Build the Service for clients with this selector.

    The pods of a target may name no port, so it leads to the number that `runtime.port` says.
    """
    metadata = names.metadata(service)
    metadata["name"] = name or names.client_service(service)
    if service.spec.target_ref is None:
        return _service(metadata, selector)
    port = names.client_port(service)
    return _service(metadata, selector, port=port, target_port=service.spec.runtime.port)


def build_replicas(service: InferenceService) -> dict[str, Any]:
    """Build the headless Service of the replicas."""
    metadata = names.metadata(service)
    metadata["name"] = names.replicas_service(service.name)
    manifest = _service(metadata, names.selector_labels(service.name))
    manifest["spec"]["clusterIP"] = "None"
    return manifest


def _service(
    metadata: dict[str, Any],
    selector: Mapping[str, str],
    *,
    port: int = SERVICE_PORT,
    target_port: int | str = names.PORT_NAME,
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "type": "ClusterIP",
            "selector": dict(selector),
            "ports": [
                {
                    "name": names.PORT_NAME,
                    "port": port,
                    "targetPort": target_port,
                    "protocol": "TCP",
                    "appProtocol": "http",
                }
            ],
        },
    }
