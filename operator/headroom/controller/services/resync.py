"""Keep the cache consistent with the cluster by periodic LISTs, whatever the watch missed.

The watch reports changes at once; what it loses is found by the next LIST. A watch that ended
causes one LIST at once, but never one after another.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from headroom.api.kind import API_VERSION, KIND
from headroom.controller.ports import Cluster
from headroom.controller.services.list_history import RESTORED_AFTER_S, ListHistory
from headroom.controller.services.service_cache import ServiceCache
from headroom.errors import ClusterError, NotFound, Unavailable

_log = logging.getLogger(__name__)

SHORTEST_S, LONGEST_S = 5.0, 60.0
PER_SERVICE_S = 0.03
"""A LIST has some 10 kB per service, so that however many there are it is 0.3 MB/s at most: every
5 s up to 166 services, every 30 s at a thousand."""
RETRY_S = 2.0


class Resync:
    """LISTs all services of the namespaces; none given means all."""

    def __init__(self, cluster: Cluster, cache: ServiceCache, namespaces: Sequence[str]) -> None:
        self._cluster, self._cache = cluster, cache
        scopes: tuple[str | None, ...] = tuple(namespaces) or (None,)
        self._histories = {scope: ListHistory() for scope in scopes}
        self._doubted = asyncio.Event()
        self._complaint = ""

    def request(self) -> None:
        """Request a LIST: the watch ended, and may have missed changes."""
        self._doubted.set()

    async def run(self) -> None:
        """LIST until cancelled.

        A LIST that fails replaces nothing: what was known stays known, and is evaluated on.
        """
        while True:
            self._doubted.clear()
            try:
                await self.list_once()
            except ClusterError as error:
                await asyncio.sleep(self._after_failure(error))
            else:
                self._complaint = ""
                await self._pause()

    async def list_once(self) -> None:
        """LIST all services, and let that replace what was known.

        Raises ClusterError where a namespace could not be listed; the others are known then.
        """
        trouble: ClusterError | None = None
        for namespace, history in self._histories.items():
            begun = self._cache.begin_list()
            try:
                found, version = await self._cluster.list_at(
                    API_VERSION, KIND, namespace, kept=self._cache.kept
                )
            except ClusterError as error:
                trouble = trouble or error
            else:
                restored = history.is_restored(version, asyncio.get_running_loop().time())
                if restored:
                    words = "etcd was restored: LISTs have been older for %.0f s, and count now"
                    _log.warning(words, RESTORED_AFTER_S)
                self._cache.replace(
                    found, begun, version=version, namespace=namespace, restored=restored
                )
        if trouble is not None:
            raise trouble
        self._cache.synced.set()

    async def _pause(self) -> None:
        """Wait for as long as the services are many, or until there is doubt, but a while."""
        await asyncio.sleep(SHORTEST_S)
        longer_s = min(LONGEST_S, PER_SERVICE_S * len(self._cache)) - SHORTEST_S
        if longer_s > 0.0:
            try:
                async with asyncio.timeout(longer_s):
                    await self._doubted.wait()
            except TimeoutError:
                return

    def _after_failure(self, error: ClusterError) -> float:
        """Say it once, and give the pause until the next attempt."""
        if isinstance(error, NotFound):  # the kind itself is not served
            self._cache.synced.clear()
        if str(error) != self._complaint:
            self._complaint = str(error)
            _log.warning("InferenceServices cannot be listed: %s", self._complaint)
        asked_s = error.retry_after_s if isinstance(error, Unavailable) else 0.0
        return max(RETRY_S, asked_s)
