"""Tells the gateways what they route: Envoy's aggregated discovery, one stream for each gateway."""

from headroom.adapters.xds_server.server import XdsServer

__all__ = ["XdsServer"]
