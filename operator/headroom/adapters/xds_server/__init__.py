"""The xDS server: Envoy's aggregated discovery service, one stream per gateway."""

from headroom.adapters.xds_server.server import XdsServer

__all__ = ["XdsServer"]
