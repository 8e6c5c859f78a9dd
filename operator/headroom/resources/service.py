"""The address of the service: port 80 on every replica that is ready, which is to say warm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headroom.resources import names

if TYPE_CHECKING:
    from headroom.api import InferenceService


def build(service: InferenceService) -> dict[str, Any]:
    """Build the Service. It balances connections, not requests."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": names.metadata(service),
        "spec": {
            "type": "ClusterIP",
            "selector": names.selector_labels(service.name),
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
