"""Gather step of one service: its spec, its workload and pods, and its other scalers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from headroom.api import InferenceService
from headroom.api.timestamps import epoch_s
from headroom.controller.decide import scaling_conflicts
from headroom.controller.decide.scaling_conflicts import ConflictStatus
from headroom.controller.gather.gather_tick import Gathered, gather
from headroom.controller.gather.metrics.metrics_reader import MetricsReader, samples_of
from headroom.controller.gather.other_writers.other_scalers import OtherScalersReader
from headroom.controller.gather.revisions import lacks_room, read_revisions
from headroom.controller.gather.workloads.shared_reads import SharedReads, Sharing
from headroom.controller.ports import Clock, Cluster, Manifest
from headroom.controller.scheduling import tick_period
from headroom.controller.service_context import ServiceContext
from headroom.controller.services.service_cache import ServiceCache
from headroom.controller.warmup import Warmer
from headroom.resources.rolling_update import is_chosen_here
from headroom.resources.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceReads:
    """The gather step, with the state that all services share for it."""

    cluster: Cluster
    metrics: MetricsReader
    clock: Clock
    cache: ServiceCache
    scalers: OtherScalersReader
    shared: SharedReads
    settings: Settings
    tick_s: float
    warmer: Warmer | None

    @property
    def period_s(self) -> float:
        """Seconds between two ticks of a service."""
        return tick_period.period_s(self.tick_s, len(self.cache))

    def forget(self, uid: str) -> None:
        """Discard the shared state of a deleted service."""
        self.shared.forget(uid)
        if self.warmer is not None:
            self.warmer.forget(uid)

    async def gather(
        self, context: ServiceContext, raw: Manifest
    ) -> tuple[InferenceService, Gathered]:
        """Parse and gather; raises InvalidSpec, TargetUnusable and ClusterError."""
        service = context.parse(raw, self.settings, self.cache.same)
        samples = samples_of(service, context.gather.samples)
        if context.gather.samples not in (None, samples):
            context.decide.restart()  # counters of other series cannot be subtracted
        context.gather.samples = samples
        period_s = self.period_s
        ahead_s = tick_period.read_ahead_s(len(self.cache), period_s)
        if service.spec.scaling.mode == "External":  # follows spec.replicas, not the decision
            ahead_s = 0.0
        gathered = await gather(
            self.cluster,
            self.metrics,
            self.clock,
            service,
            samples=samples,
            state=context.gather,
            initial_replicas=partial(context.initial_replicas, service),
            shared=self.shared,
            sharing=Sharing(ahead_s=ahead_s, period_s=period_s),
        )
        if self.warmer is not None:
            self.warmer.see(service, gathered.raw_pods)
        live = gathered.deployment
        if live is None or not lacks_room(live, gathered.observation):
            return service, gathered
        found = None
        if is_chosen_here(service, context.children[-1]):
            found = await read_revisions(self.cluster, live, gathered.raw_pods)
        return service, replace(gathered, revisions=found)

    async def conflicts(
        self, context: ServiceContext, service: InferenceService, gathered: Gathered, raw: Manifest
    ) -> ConflictStatus:
        """Return the conflicts with other writers of the replicas. Raises ClusterError."""
        now_s, current = self.clock.now_s(), gathered.observation.current
        created = raw["metadata"].get("creationTimestamp")
        scalers = await self.scalers.read(
            service, gathered.deployment, now_s, created_s=epoch_s(created) if created else 0.0
        )
        if gathered.deployment is not None:
            context.decide.overwrites = context.decide.overwrites.observe(
                current, scalers.writer, by_us=scalers.ours, now_s=now_s
            )
        return scaling_conflicts.check(service, scalers, context.decide.overwrites, current, now_s)
