"""One LIST of a namespace out of turn, where an object that a tick needs is gone."""

from __future__ import annotations

from headroom.api.kind import API_VERSION, KIND
from headroom.controller.ports import Cluster
from headroom.controller.services.service_cache import ServiceCache


async def relist(cluster: Cluster, cache: ServiceCache, namespace: str) -> None:
    """Replace the known services of a namespace by those of a LIST; raise ClusterError."""
    begun, large = cache.begin_list(), set[str]()
    found, version = await cluster.list_at(
        *(API_VERSION, KIND, namespace),
        left_out=lambda one: large.add(one["metadata"].get("uid", "")),
    )
    cache.replace(found, begun, version=version, namespace=namespace, left_out=large)
