"""Namespaces whose services could not be read: their routes stay until they can be.

Missing is not zero. Gateways and activators keep what they have for such a namespace, and the ports
that its slices record are given to no other service. Once its services are read, they continue from
these ports.
"""

from __future__ import annotations

import asyncio

from headroom.controller.ports import Cluster
from headroom.controller.routing.recorded_slices import slices_of
from headroom.controller.routing.route_table import RouteTable
from headroom.controller.routing.routing_changes import RoutingChanges
from headroom.controller.services.service_cache import ServiceCache

LOOK_EVERY_S = 1.0


class UnreadNamespaces:
    """Those of one term of routing, from its beginning until their recorded ports are known."""

    def __init__(
        self, cluster: Cluster, cache: ServiceCache, table: RouteTable, changes: RoutingChanges
    ) -> None:
        self._cluster = cluster
        self._cache = cache
        self._table = table
        self._changes = changes
        self.names = set(cache.unread)

    async def adopt(self) -> None:
        """Let routing begin in each that has been read meanwhile, until there are no more."""
        while self.names:
            await asyncio.sleep(LOOK_EVERY_S)
            for namespace in sorted(self.names - self._cache.unread):
                slices = await slices_of(self._cluster, namespace)
                self._table.adopt(namespace, slices, self._cache.by_uid())
                self.names.discard(namespace)
                self._changes.changed()
