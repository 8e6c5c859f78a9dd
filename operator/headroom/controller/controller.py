"""The controller: its parts, connected through its ports.

Watching (`follow`) and deciding (`lead`) are separate: a process that waits for the lease knows
what the leader knows, and decides at once when it takes over.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from headroom.controller.connections import Connections
from headroom.controller.leadership.guard import Lease, LeasedCluster
from headroom.controller.options import ControllerOptions
from headroom.controller.ports import Cluster, Manifest
from headroom.controller.reconciler import Reconciler
from headroom.controller.routing.ports import Routing
from headroom.controller.scheduling.scheduler import Scheduler
from headroom.controller.services.resync import Resync
from headroom.controller.services.service_cache import ServiceCache
from headroom.controller.warmup import PodWatch
from headroom.errors import ClusterError
from headroom.event_loop_shares import EventLoopShares
from headroom.resources.names import WARMED_LABEL

_log = logging.getLogger(__name__)

LOOK_WITHIN_S = 5.0
"""A new leader lists once what the last one wrote, and waits no longer than this."""


WATCHED_AGAIN_S = 5.0
"""After a failure of this program itself in a watch."""


class Controller:
    """Keeps the InferenceServices of the namespaces given; none given means all."""

    def __init__(
        self,
        connections: Connections,
        options: ControllerOptions,
        *,
        router: Routing | None = None,
        chance: random.Random | None = None,
    ) -> None:
        self._connections = connections
        self._options = options
        self._router = router
        self._chance = chance or random.Random()  # noqa: S311  (spreads load)
        self.cache = ServiceCache(on_change=self._changed, on_gone=self._gone)
        self._resync = Resync(
            connections.cluster,
            self.cache,
            options.namespaces,
            chance=self._chance,
            on_unlisted=self._unlisted,
            on_unread=connections.recorder.unread,
        )
        self._loop = EventLoopShares()
        self._reconciler: Reconciler | None = None
        self._lease: Lease | None = None
        self.scheduler: Scheduler | None = None
        """There while this process decides."""

    @property
    def unlisted(self) -> Mapping[str, str]:
        """The namespaces that cannot be read while others can, and why."""
        return self._resync.unlisted

    def unauthenticated_s(self) -> float:
        """Return the time for which the API server has accepted no credentials; 0 if it does."""
        return self._resync.unauthenticated_s()

    async def run(self) -> None:
        """Follow and lead until cancelled, without a lease: this must be the only process."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.follow())
            group.create_task(self.lead())

    async def follow(self) -> None:
        """Know the services until cancelled."""
        await self._resync.run()

    async def lead(self, lease: Lease | None = None) -> None:
        """Decide until cancelled, and write while the lease is held.

        Under the same lease as last time the contexts still hold; under another one another process
        may have decided since, and every context is restored from the cluster.
        """
        if self._reconciler is None or lease is not self._lease:
            self._reconciler, self._lease = self._new_reconciler(lease), lease
        reconciler = self._reconciler
        if self.cache.synced.is_set():
            await self._look_again()
        self.scheduler = scheduler = Scheduler(
            tick=reconciler.tick,
            on_failure=reconciler.report_failure,
            on_ticked=self._connections.recorder.ticked,
            period_s=self._options.tick_s,
            name_of=self._name_of,
            owner_of=self._namespace_of,
            chance=self._chance,
        )
        try:
            for uid in self.cache.uids():
                scheduler.evaluate_soon(uid)
            async with asyncio.TaskGroup() as group:
                group.create_task(scheduler.run())
                if self._router is not None:
                    cluster = self._writing(lease)
                    group.create_task(
                        self._router.lead(cluster, self.cache, reconciler.learned_cost)
                    )
                warmup = self._connections.warmup
                for watch in () if warmup is None else warmup.watches:
                    group.create_task(self._watch_warm_ups(watch))
        finally:
            self.scheduler = None
            reconciler.withdraw()

    def wake(self, key: str) -> None:
        """Evaluate a service now, by `namespace/name`: an activator holds a request for it."""
        self.reroute()
        namespace, _, name = key.partition("/")
        uid = self.cache.named(namespace, name)
        if uid is not None and self.scheduler is not None:
            self.scheduler.evaluate_soon(uid)

    def reroute(self) -> None:
        """Publish routes again: the activators that hold requests have changed."""
        if self._router is not None:
            self._router.changed()

    def observe(self, event_type: str | None, service: Manifest) -> None:
        """Process an event of a watch."""
        if event_type == "DELETED":
            self.cache.forget(service["metadata"]["uid"])
            return
        namespace = str(service["metadata"].get("namespace", ""))
        if not self._loop.run_now(namespace, 1, partial(self.cache.saw, service)):
            self._resync.request()  # a LIST shows its last state; who changes it too often waits

    def doubt(self) -> None:
        """Note that a watch has ended: it may have missed something."""
        self._resync.request()

    def _new_reconciler(self, lease: Lease | None) -> Reconciler:
        return Reconciler(
            replace(self._connections, cluster=self._writing(lease)),
            self.cache,
            self._options,
            route_status=None if self._router is None else self._router.route_status,
            upcoming=self._upcoming,
        )

    def _writing(self, lease: Lease | None) -> Cluster:
        cluster = self._connections.cluster
        return cluster if lease is None else LeasedCluster(cluster, lease)

    async def _look_again(self) -> None:
        try:
            async with asyncio.timeout(LOOK_WITHIN_S):
                await self._resync.list_once()
        except (ClusterError, TimeoutError) as error:
            _log.warning("the first LIST failed; deciding from the watch cache: %s", error)

    def _upcoming(self, seconds: float) -> Iterable[tuple[float, str]]:
        return () if self.scheduler is None else self.scheduler.due_within(seconds)

    def _unlisted(self, namespaces: Mapping[str, str]) -> None:
        self._connections.recorder.unlisted(namespaces)
        self.reroute()

    def _name_of(self, uid: str) -> str:
        service = self.cache.get(uid)
        if service is None:
            return uid
        return f"{service['metadata']['namespace']}/{service['metadata']['name']}"

    def _namespace_of(self, uid: str) -> str:
        service = self.cache.get(uid)
        return "" if service is None else str(service["metadata"]["namespace"])

    def _changed(self, uid: str) -> None:
        self.reroute()
        if self.scheduler is not None:
            self.scheduler.evaluate_soon(uid)

    async def _watch_warm_ups(self, watch: PodWatch) -> None:
        """Evaluate services whose pods are being warmed when these change, before the next tick."""
        while True:
            try:
                await watch.run(lambda _: None, self._pod_changed)
            except Exception:  # noqa: BLE001  (whatever it is, scaling goes on)
                _log.exception("the watch of pods in warm-up failed and restarts")
            await asyncio.sleep(WATCHED_AGAIN_S)

    def _pod_changed(self, _: str, pod: Manifest) -> None:
        """Evaluate the pod's service at once: its server may be ready, or have restarted."""
        metadata = pod["metadata"]
        name = (metadata.get("labels") or {}).get(WARMED_LABEL, "")
        uid = self.cache.named(metadata["namespace"], name)
        if uid is not None and self.scheduler is not None and self._reconciler is not None:
            self._reconciler.on_pods_changed(uid)
            self.scheduler.evaluate_soon(uid)

    def _gone(self, uid: str) -> None:
        self.reroute()
        if self.scheduler is not None:
            self.scheduler.remove(uid)
        if self._reconciler is not None:
            self._reconciler.forget(uid)
