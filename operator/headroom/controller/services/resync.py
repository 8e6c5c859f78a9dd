"""Keep the cache consistent with the cluster by periodic LISTs, whatever the watch missed.

The watch reports changes at once; what it loses is found by the next LIST. A watch that ended
causes one LIST at once, but never one after another.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Mapping, Sequence

from headroom.api.kind import API_VERSION, KIND
from headroom.controller.ports import Cluster, Manifest
from headroom.controller.services.left_out import LeftOut
from headroom.controller.services.list_history import RESTORED_AFTER_S, ListHistory
from headroom.controller.services.service_cache import ServiceCache
from headroom.controller.services.unlisted_namespaces import LONGEST_PAUSE_S, UnlistedNamespaces
from headroom.errors import ClusterError, NotFound, Unauthenticated
from headroom.repeated_failures import RepeatedFailures, pause_after_s

_log = logging.getLogger(__name__)

SHORTEST_S, LONGEST_S = 5.0, 60.0
PER_SERVICE_S = 0.03
"""A LIST has some 10 kB per service, so that however many there are it is 0.3 MB/s at most: every
5 s up to 166 services, every 30 s at a thousand."""
RETRY_S = 2.0
LEAST_SPREAD = 0.8
"""Least share of a pause before a namespace is tried again."""
_REMEDY = (
    "bind the operator's Role in it, or remove it from watch.namespaces. Its services stay as they "
    f"are, the other namespaces go on, and it is tried again every {LONGEST_PAUSE_S:.0f} s"
)

OnUnlisted = Callable[[Mapping[str, str]], None]
"""Takes the namespaces that cannot be listed, and why."""
OnUnread = Callable[[Collection[tuple[str, str]]], None]
"""Takes the services that are too large to be read, by namespace and name."""


class Resync:
    """LISTs all services of the namespaces; none given means all."""

    def __init__(
        self,
        cluster: Cluster,
        cache: ServiceCache,
        namespaces: Sequence[str],
        *,
        chance: random.Random,
        on_unlisted: OnUnlisted = lambda _: None,
        on_unread: OnUnread = lambda _: None,
    ) -> None:
        self._cluster, self._cache = cluster, cache
        scopes: tuple[str | None, ...] = tuple(namespaces) or (None,)
        self._histories = {scope: ListHistory() for scope in scopes}
        self._unread = set(namespaces)
        self._unlisted = UnlistedNamespaces()
        self._chance = chance
        self._on_unlisted = on_unlisted
        self._left_out = LeftOut(on_unread)
        self._doubted = asyncio.Event()
        self._failures = RepeatedFailures()
        self._unauthenticated_since_s: float | None = None

    @property
    def unlisted(self) -> Mapping[str, str]:
        """The namespaces that cannot be listed while others can, and why."""
        return self._unlisted.why()

    def unauthenticated_s(self) -> float:
        """Return the time for which each LIST was answered with 401; 0 if the last one was not."""
        since_s = self._unauthenticated_since_s
        return 0.0 if since_s is None else asyncio.get_running_loop().time() - since_s

    def request(self) -> None:
        """Request a LIST: the watch ended, and may have missed changes."""
        self._doubted.set()

    async def run(self) -> None:
        """LIST until cancelled.

        A LIST that fails replaces nothing: what was known stays known, and is evaluated on.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep())
            group.create_task(self._retry())

    async def list_once(self) -> None:
        """Replace all known services by those of a LIST.

        Raises ClusterError where no namespace could be listed, or the kind is not served.
        """
        await self._list(tuple(self._histories))

    async def _keep(self) -> None:
        """LIST the namespaces that can be listed; all of them where none can."""
        while True:
            self._doubted.clear()
            scopes = [one for one in self._histories if one not in self._unlisted]
            try:
                await self._list(scopes or tuple(self._histories))
            except ClusterError as error:
                await asyncio.sleep(self._after_failure(error))
            else:
                self._failures.ends()
                self._unauthenticated_since_s = None
                await self._pause()

    async def _retry(self) -> None:
        """LIST the others again, each at intervals of its own."""
        while True:
            await asyncio.sleep(RETRY_S)
            for namespace in self._unlisted.due(asyncio.get_running_loop().time()):
                try:
                    await self._list_one(namespace)
                except ClusterError as error:
                    self._note({namespace: error})

    async def _list(self, scopes: Collection[str | None]) -> None:
        failed: dict[str | None, ClusterError] = {}
        for scope in scopes:
            try:
                await self._list_one(scope)
            except ClusterError as error:
                failed[scope] = error
        unserved = [one for one in failed.values() if isinstance(one, NotFound)]
        if unserved or len(failed) == len(scopes):
            raise (*unserved, *failed.values())[0]
        self._note({str(scope): one for scope, one in failed.items()})
        self._cache.synced.set()

    async def _list_one(self, scope: str | None) -> None:
        begun, left_out = self._cache.begin_list(), list[Manifest]()
        found, version = await self._cluster.list_at(
            API_VERSION, KIND, scope, kept=self._cache.kept, left_out=left_out.append
        )
        restored = self._histories[scope].is_restored(version, asyncio.get_running_loop().time())
        if restored:
            words = "etcd was restored: LISTs have been older for %.0f s, and count now"
            _log.warning(words, RESTORED_AFTER_S)
        self._cache.replace(
            found,
            begun,
            version=version,
            namespace=scope,
            restored=restored,
            left_out=self._left_out.of(scope, left_out),
        )
        if scope is not None:
            self._unread.discard(scope)
            if self._unlisted.listed(scope):
                _log.info("namespace %s can be read again", scope)
                self._tell()

    def _note(self, failed: Mapping[str, ClusterError]) -> None:
        """Say once of each namespace why it cannot be listed, while others can."""
        now_s, news = asyncio.get_running_loop().time(), False
        for namespace, error in failed.items():
            spread = self._chance.uniform(LEAST_SPREAD, 1.0)
            if self._unlisted.failed(namespace, str(error), now_s, spread):
                news = True
                _log.warning("namespace %s cannot be read: %s: %s", namespace, _REMEDY, error)
        if news:
            self._tell()

    def _tell(self) -> None:
        unlisted = self._unlisted.why()
        self._cache.unread = frozenset(self._unread & unlisted.keys())
        self._on_unlisted(unlisted)

    async def _pause(self) -> None:
        """Wait for the period, or until a LIST is requested, but at least for a moment."""
        await asyncio.sleep(SHORTEST_S)
        longer_s = min(LONGEST_S, PER_SERVICE_S * len(self._cache)) - SHORTEST_S
        if longer_s > 0.0:
            try:
                async with asyncio.timeout(longer_s):
                    await self._doubted.wait()
            except TimeoutError:
                return

    def _after_failure(self, error: ClusterError) -> float:
        """Log a new failure once, and return the pause until the next attempt."""
        if isinstance(error, NotFound):  # the kind itself is not served
            self._cache.synced.clear()
        if not isinstance(error, Unauthenticated):
            self._unauthenticated_since_s = None
        elif self._unauthenticated_since_s is None:
            self._unauthenticated_since_s = asyncio.get_running_loop().time()
        if self._failures.is_news(error):
            _log.warning("InferenceServices cannot be listed: %s", error)
        return pause_after_s(error, RETRY_S)
