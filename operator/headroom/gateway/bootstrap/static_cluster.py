"""Clusters of Envoy's bootstrap configuration with one fixed address."""

from __future__ import annotations

from headroom.gateway.type_urls import (
    Json,
    seconds,
)


def static_cluster(name: str, address: Json) -> Json:
    """Build a cluster of one host that never changes."""
    hosts = [{"endpoint": {"address": address}}]
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": seconds(0.5),
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": hosts}]},
    }


def admin_address(admin: str | int) -> Json:
    """Build the address of the admin interface: a socket's name, or a port of loopback."""
    return (
        {"pipe": {"path": admin}} if isinstance(admin, str) else socket_address("127.0.0.1", admin)
    )


def socket_address(address: str, port: int | str) -> Json:
    """Build an address; `port` may be a name in braces."""
    return {"socket_address": {"address": address, "port_value": port}}
