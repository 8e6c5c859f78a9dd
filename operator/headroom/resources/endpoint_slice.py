"""The EndpointSlice of a service in Gateway mode: its gateways' addresses and its port there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headroom.resources import names

if TYPE_CHECKING:
    from headroom.api import InferenceService

SERVICE_NAME_LABEL = "kubernetes.io/service-name"
MANAGED_BY_LABEL = "endpointslice.kubernetes.io/managed-by"
MANAGED_BY = "headroom.dev"
MANAGED_BY_KUBERNETES = f"{MANAGED_BY_LABEL}=endpointslice-controller.k8s.io"
MANAGED_BY_SELECTOR = f"{MANAGED_BY_LABEL}={MANAGED_BY}"


def build(
    service: InferenceService,
    addresses: Sequence[str],
    port: int,
    service_name: str = "",
    *,
    ipv6: bool = False,
) -> dict[str, Any]:
    """Build the slice; without addresses it is empty and kept for later."""
    service_name = service_name or names.client_service(service)
    metadata = names.metadata(service)
    metadata["name"] = names.gateway_slice(service_name)
    metadata["labels"] |= {
        SERVICE_NAME_LABEL: service_name,
        MANAGED_BY_LABEL: MANAGED_BY,
    }
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata,
        "addressType": "IPv6" if ipv6 else "IPv4",
        "endpoints": [
            {"addresses": [address], "conditions": {"ready": True}} for address in addresses
        ],
        "ports": [
            {"name": names.PORT_NAME, "port": port, "protocol": "TCP", "appProtocol": "http"}
        ],
    }
