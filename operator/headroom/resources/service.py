"""The address of the service, port 80, and where it leads.

To every replica that is ready, which is to say warm; or, in Gateway mode, to a gateway, with the
replicas at an address of their own. Clients change nothing: name, address and port stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headroom.resources import names

if TYPE_CHECKING:
    from headroom.api import InferenceService


def build(service: InferenceService) -> dict[str, Any]:
    """Build the Service that leads to the replicas. It balances connections, not requests."""
    return _service(names.metadata(service), names.selector_labels(service.name))


def build_routed(service: InferenceService) -> dict[str, Any]:
    """Build the Service that leads to a gateway.

    It selects no pod: the slice beside it says where it leads. A Service without any selector would
    keep the slices that its last selector filled.
    """
    return _service(names.metadata(service), {names.ROUTED_LABEL: "gateway"})


def build_replicas(service: InferenceService) -> dict[str, Any]:
    """Build the headless Service of the replicas themselves."""
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
