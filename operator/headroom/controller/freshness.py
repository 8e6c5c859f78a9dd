"""Keeps the cache true to the cluster.

A LIST now and then, whatever the watch has said or missed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from headroom.api.inference_service import API_VERSION, KIND
from headroom.controller.cache import ServiceCache
from headroom.controller.ports import Cluster
from headroom.errors import ClusterError, NotFound, Unavailable

_log = logging.getLogger(__name__)

LIST_EVERY_S = 60.0
RETRY_S = 2.0


async def keep_fresh(cluster: Cluster, cache: ServiceCache, namespaces: Sequence[str]) -> None:
    """LIST all services of the namespaces (none given: of all) until cancelled.

    A LIST that fails replaces nothing: what was known stays known, and is evaluated on.
    """
    complaint = ""
    while True:
        pause_s = LIST_EVERY_S
        try:
            await list_once(cluster, cache, namespaces)
        except ClusterError as error:
            asked_s = error.retry_after_s if isinstance(error, Unavailable) else 0.0
            pause_s = max(RETRY_S, asked_s)
            if isinstance(error, NotFound):  # the kind itself is not served
                cache.synced.clear()
            if str(error) != complaint:
                complaint = str(error)
                _log.warning("InferenceServices cannot be listed: %s", complaint)
        else:
            complaint = ""
        await asyncio.sleep(pause_s)


async def list_once(cluster: Cluster, cache: ServiceCache, namespaces: Sequence[str]) -> None:
    """LIST all services, and let that replace what was known. Raises ClusterError."""
    begun = cache.begin_list()
    found = []
    for namespace in namespaces or (None,):
        found += await cluster.list_all(API_VERSION, KIND, namespace)
    cache.replace(found, begun)
