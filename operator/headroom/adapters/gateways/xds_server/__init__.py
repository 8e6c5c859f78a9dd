"""The xDS server: Envoy's aggregated discovery service, one stream per gateway."""

from headroom.adapters.gateways.xds_server.server import XdsServer

__all__ = ["XdsServer"]
