"""The parts of the controller, put together over its ports."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from headroom.controller.cache import ServiceCache
from headroom.controller.evaluation import Onlooker
from headroom.controller.freshness import keep_fresh
from headroom.controller.ports import Clock, Cluster, Journal, Manifest, Recorder, Scraper
from headroom.controller.reconciler import Reconciler
from headroom.controller.recording import Recording
from headroom.controller.scheduler import Scheduler


class Controller:
    """Keeps the InferenceServices of the namespaces given; none given means all.

    With a journal, what a simulation needs to replay their ticks is recorded in it.
    """

    def __init__(
        self,
        *,
        cluster: Cluster,
        scraper: Scraper,
        clock: Clock,
        recorder: Recorder,
        instance: str,
        namespaces: Sequence[str] = (),
        tick_s: float = 2.0,
        journal: Journal | None = None,
        chance: random.Random | None = None,
        onlooker: Onlooker | None = None,
    ) -> None:
        self._cluster = cluster
        self._namespaces = tuple(namespaces)
        self.scheduler = Scheduler(
            tick=self._tick,
            on_failure=self._failed,
            on_ticked=recorder.ticked,
            period_s=tick_s,
            name_of=self._name_of,
            chance=chance or random.Random(),  # noqa: S311  (spreads load)
        )
        self.cache = ServiceCache(on_change=self.scheduler.kick, on_gone=self._gone)
        self._reconciler = Reconciler(
            cluster=cluster,
            scraper=scraper,
            clock=clock,
            cache=self.cache,
            recorder=recorder,
            tick_s=tick_s,
            instance=instance,
            recording=None if journal is None else Recording(journal),
            onlooker=onlooker,
        )

    async def run(self) -> None:
        """Keep on until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(keep_fresh(self._cluster, self.cache, self._namespaces))
            group.create_task(self.scheduler.run())

    def observe(self, event_type: str | None, service: Manifest) -> None:
        """Take in an event of a watch."""
        if event_type == "DELETED":
            self.cache.forget(service["metadata"]["uid"])
        else:
            self.cache.saw(service)

    async def _tick(self, uid: str) -> None:
        await self._reconciler.tick(uid)

    async def _failed(self, uid: str, error: Exception) -> None:
        await self._reconciler.report_failure(uid, error)

    def _name_of(self, uid: str) -> str:
        service = self.cache.get(uid)
        if service is None:
            return uid
        return f"{service['metadata']['namespace']}/{service['metadata']['name']}"

    def _gone(self, uid: str) -> None:
        self.scheduler.remove(uid)
        self._reconciler.forget(uid)
