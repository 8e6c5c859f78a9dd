"""Keeps a context for each service until its deletion; starts it over when the clock goes back."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

from headroom.api import InferenceService
from headroom.controller.connections import Connections
from headroom.controller.gather.gateways.route_status import NOT_ROUTED, RouteStatus
from headroom.controller.gather.other_writers.other_scalers import OtherScalersReader
from headroom.controller.gather.workloads.shared_reads import SharedReads, Upcoming
from headroom.controller.options import ControllerOptions
from headroom.controller.ports import Manifest
from headroom.controller.report.conditions import held_conditions
from headroom.controller.report.display import Display
from headroom.controller.report.reporter import Reporter
from headroom.controller.service_context import ServiceContext, restore
from headroom.controller.service_decision import ServiceDecision
from headroom.controller.service_reads import ServiceReads
from headroom.controller.service_tick import ServiceTick
from headroom.controller.service_writes import ServiceWrites
from headroom.controller.services.relisting import relist
from headroom.controller.services.service_cache import ServiceCache
from headroom.controller.sharing.ceilings import Ceilings
from headroom.controller.sharing.competition import Competition
from headroom.controller.sharing.partners import Partners
from headroom.controller.warmup import Warmer
from headroom.controller.warmup.gate import GatedPod
from headroom.errors import Conflict, NotFound, ScrapeFailed
from headroom.scaling.values.observation import CostModel
from headroom.telemetry.errors import TelemetryError

_log = logging.getLogger(__name__)

CLOCK_BACK_S = 10.0
"""If the clock goes back by less than this, or by up to two ticks, the decision waits until it has
caught up."""


class Reconciler:
    """Keeps one context per UID from tick to tick."""

    def __init__(
        self,
        to: Connections,
        cache: ServiceCache,
        options: ControllerOptions,
        *,
        route_status: Callable[[InferenceService], RouteStatus] | None = None,
        upcoming: Upcoming = lambda _: (),
    ) -> None:
        self._cluster = to.cluster
        self._metrics = to.metrics
        self._clock = to.clock
        self._cache = cache
        self._display = Display(to.recorder, to.listener)
        self._warmer = None
        if to.warmup is not None:
            self._warmer = Warmer(
                requester=to.warmup.requester,
                cluster=to.cluster,
                clock=to.clock,
                on_warm=self._on_warm,
            )
        self._competition = Competition()
        self._partners = Partners(cache, self._competition.compete)
        self._seen_s = to.clock.now_s()
        """The time at the last tick."""
        self._contexts: dict[str, ServiceContext] = {}
        self._shared = SharedReads(to.cluster, cache, upcoming, clusterwide=not options.namespaces)
        self._reads = ServiceReads(
            cluster=to.cluster,
            metrics=to.metrics,
            clock=to.clock,
            cache=cache,
            scalers=OtherScalersReader(to.cluster, cache.owners),
            shared=self._shared,
            settings=options.settings,
            tick_s=options.tick_s,
            warmer=self._warmer,
        )
        self._tick = self._service_tick(to, options, route_status or (lambda _: NOT_ROUTED))

    def _service_tick(
        self,
        to: Connections,
        options: ControllerOptions,
        route_status: Callable[[InferenceService], RouteStatus],
    ) -> ServiceTick:
        """Compose the steps of a tick."""
        cache = self._cache
        return ServiceTick(
            reads=self._reads,
            writes=ServiceWrites(
                cluster=to.cluster,
                clock=to.clock,
                cache=cache,
                shared=self._shared,
                settings=options.settings,
            ),
            cache=cache,
            decision=ServiceDecision(
                ceilings=Ceilings(options.caps, cache, to.note),
                competition=self._competition,
                partners=self._partners,
                route_status=route_status,
            ),
            reporter=Reporter(to.cluster, cache, to.recorder, options.instance),
            display=self._display,
            recording=to.recording,
        )

    async def tick(self, uid: str) -> None:
        """Converge once.

        Raises ClusterError if the API does not allow it; the next tick starts from the cluster.
        """
        raw = self._cache.get(uid)
        if raw is None:
            return
        context = self._contexts.get(uid)
        if context is None:
            context = self._contexts[uid] = restore(raw, self._clock.now_s())
        if raw["metadata"].get("deletionTimestamp"):
            await self._hold_deleted(context, raw["metadata"])
            return
        self._follow_clock(context)
        try:
            await self._tick.run(context)
        except NotFound:
            # find out whether it is the service itself that is gone
            await relist(self._cluster, self._cache, context.report.namespace)
            if self._cache.get(uid) is not None:
                raise

    async def _hold_deleted(self, context: ServiceContext, metadata: Manifest) -> None:
        """Report that nothing is scaled or repaired any more, and the deletion's finalizers."""
        found = held_conditions.of_deletion(metadata.get("finalizers") or ())
        with suppress(NotFound, Conflict):  # it is gone, or will be read again
            await self._tick.hold(context, found, metadata.get("generation", 0))

    def _follow_clock(self, context: ServiceContext) -> None:
        """Start over where the clock went back by more than the decision ignores."""
        now_s, most_s = self._clock.now_s(), max(CLOCK_BACK_S, 2.0 * self._reads.period_s)
        if self._seen_s - now_s > most_s:
            words = "the clock went back by %.0f s: the windows of all services start over"
            _log.warning(words, self._seen_s - now_s)
            self._competition.restart()
            self._partners.restart()
        self._seen_s = now_s
        last_s = context.decide.service.state.last_s
        if last_s is not None and last_s - now_s > most_s:
            context.restart()

    def on_pods_changed(self, uid: str) -> None:
        """Note that a service's pods changed: an earlier list is too old for it."""
        self._shared.invalidate(uid)

    async def _on_warm(self, service: InferenceService, pod: GatedPod) -> None:
        """Take a pod's counters after its warm-up as the baseline: warm-up requests are no load."""
        context = self._contexts.get(service.uid)
        if context is None or context.gather.samples is None:
            return
        try:
            await self._metrics.begin(service, pod, context.gather.samples)
        except (ScrapeFailed, TelemetryError) as error:
            name = f"{service.namespace}/{service.name}"
            _log.warning("%s: warm-up requests count as load, because %s", name, error)

    async def report_failure(self, uid: str, error: Exception) -> None:
        """Report in a condition that the last tick failed.

        Raises ClusterError if that cannot be written.
        """
        context, raw = self._contexts.get(uid), self._cache.get(uid)
        if context is None or raw is None:
            return
        generation = raw["metadata"].get("generation", 0)
        text = str(error) or "it did not finish in time"
        found = held_conditions.of_failed_tick(f"{type(error).__name__}: {text}")
        await self._tick.report_only(context, found, generation)

    def learned_cost(self, uid: str) -> CostModel | None:
        """Return a service's cost as last fitted; None before its first decision."""
        context = self._contexts.get(uid)
        return None if context is None else context.decide.service.state.cost

    def forget(self, uid: str) -> None:
        """Discard the state of a deleted service."""
        context = self._contexts.pop(uid, None)
        self._tick.forget(uid)
        if context is not None:
            self._display.forget(context.report)

    def withdraw(self) -> None:
        """Remove the metrics that it showed and stop warm-ups: another process decides now."""
        if self._warmer is not None:
            self._warmer.stop()
        for context in self._contexts.values():
            self._display.withdraw(context.report)
