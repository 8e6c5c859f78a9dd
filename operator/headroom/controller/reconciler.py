"""One tick of one service: gather, decide, act, report."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from headroom.api import InferenceService, InvalidSpec
from headroom.api.kind import API_VERSION, KIND
from headroom.api.timestamps import epoch_s
from headroom.controller.act.act_tick import (
    WriteResult,
    Writes,
    may_scale,
    replicas_to_write,
)
from headroom.controller.act.eviction import evict, objection, rebalancing_objection
from headroom.controller.decide import obstacles
from headroom.controller.decide.decide_tick import DecisionInputs, DecisionResult
from headroom.controller.decide.external_scaling import next_replicas
from headroom.controller.decide.obstacles import ConflictStatus
from headroom.controller.decide.recovery import DecisionFailure, decide_or_keep
from headroom.controller.decide.scale_to_zero import misses_per_cold_start
from headroom.controller.gather.gather_tick import Gathered, gather
from headroom.controller.gather.metrics_reader import MetricsReader, samples_of
from headroom.controller.gather.other_scalers import OtherScalersReader
from headroom.controller.gather.route_status import NOT_ROUTED, RouteStatus
from headroom.controller.gather.shared_reads import SharedReads, Sharing, Upcoming
from headroom.controller.gather.workload import TargetUnusable
from headroom.controller.ports import Clock, Cluster, Manifest, Recorder
from headroom.controller.report import condition_rules
from headroom.controller.report.condition_result import ConditionResult, TickResult
from headroom.controller.report.error_budget import judged
from headroom.controller.report.evaluation import DecisionListener, Evaluation
from headroom.controller.report.recording import Recording
from headroom.controller.report.reporter import Reporter
from headroom.controller.scheduling import tick_period
from headroom.controller.service_context import ServiceContext, restore
from headroom.controller.services.service_cache import ServiceCache
from headroom.controller.sharing.ceilings import NO_CAPS, Caps, Ceiling, Ceilings, template_of
from headroom.controller.sharing.competition import Competition
from headroom.controller.warmup import Requester, Warmer
from headroom.controller.warmup.gate import GatedPod
from headroom.errors import NotFound, ScrapeFailed
from headroom.resources import accelerators
from headroom.resources.settings import DEFAULTS, Settings
from headroom.scaling import Decision, Policy, State
from headroom.scaling.values import CostModel, PodState
from headroom.telemetry.errors import TelemetryError
from headroom.telemetry.pod_samples import PodSamples

_log = logging.getLogger(__name__)

CLOCK_BACK_S = 10.0
"""By less, and by up to two ticks, the decision waits until the time is there again."""


class Reconciler:
    """Keeps one context per UID from tick to tick."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        metrics: MetricsReader,
        clock: Clock,
        cache: ServiceCache,
        recorder: Recorder,
        tick_s: float,
        instance: str,
        recording: Recording | None = None,
        listener: DecisionListener | None = None,
        caps: Caps = NO_CAPS,
        requester: Requester | None = None,
        settings: Settings = DEFAULTS,
        route_status: Callable[[InferenceService], RouteStatus] | None = None,
        upcoming: Upcoming = lambda _: (),
        clusterwide: bool = False,
    ) -> None:
        self._cluster = cluster
        self._metrics = metrics
        self._clock = clock
        self._cache = cache
        self._recorder = recorder
        self._recording = recording
        self._listener = listener
        self._warmer = None
        if requester is not None:
            self._warmer = Warmer(
                requester=requester, cluster=cluster, clock=clock, on_warm=self._on_warm
            )
        self._settings = settings
        self._route_status_of = route_status or (lambda _: NOT_ROUTED)
        self._reporter = Reporter(cluster, cache, instance)
        self._tick_s = tick_s
        self._competition = Competition()
        self._ceilings = Ceilings(caps, cache)
        self._seen_s = clock.now_s()
        """The time at the last tick."""
        self._scalers = OtherScalersReader(cluster, cache.owners)
        self._contexts: dict[str, ServiceContext] = {}
        self._shared = SharedReads(cluster, cache, upcoming, clusterwide=clusterwide)

    async def tick(self, uid: str) -> None:
        """Converge once.

        Raises ClusterError if the API does not allow it; the next tick starts from the cluster.
        """
        raw = self._cache.get(uid)
        if raw is None or raw["metadata"].get("deletionTimestamp"):
            return
        context = self._contexts.get(uid)
        if context is None:
            context = self._contexts[uid] = restore(raw, self._clock.now_s())
        self._follow_clock(context)
        try:
            await self._converge(context)
        except NotFound:
            await self._relist(context.report.namespace)
            if self._cache.get(uid) is not None:
                raise

    def _follow_clock(self, context: ServiceContext) -> None:
        """Start over where the clock went back by more than the decision ignores."""
        now_s, most_s = self._clock.now_s(), max(CLOCK_BACK_S, 2.0 * self._period_s)
        if self._seen_s - now_s > most_s:
            words = "the clock went back by %.0f s: the windows of all services start over"
            _log.warning(words, self._seen_s - now_s)
            self._competition = Competition()
        self._seen_s = now_s
        last_s = context.decide.service.state.last_s
        if last_s is not None and last_s - now_s > most_s:
            context.restart()

    def on_pods_changed(self, uid: str) -> None:
        """Note that a service's pods changed: an earlier list is too old for it."""
        self._shared.invalidate(uid)

    async def _converge(self, context: ServiceContext) -> None:
        """Gather, decide, act, report; what cannot be acted on is reported, and changes nothing."""
        raw = self._cache.get(context.uid)
        if raw is None:
            return
        try:
            service = context.parse(raw, self._settings, self._cache.same)
            samples = samples_of(service, context.gather.samples)
            if context.gather.samples not in (None, samples):
                context.decide.restart()  # counters of other series cannot be subtracted
            context.gather.samples = samples
            gathered = await self._gather(context, service, samples)
        except InvalidSpec as error:
            found = condition_rules.of_invalid_spec(str(error))
            await self._hold(context, found, raw["metadata"].get("generation", 0))
            return
        except TargetUnusable as error:
            found = condition_rules.of_unusable_target(error)
            await self._hold(context, found, raw["metadata"].get("generation", 0))
            return
        conflicts = await self._conflicts(context, service, gathered, raw)
        context.decide.reset_on_mode_change(service.spec.scaling.mode)
        workload = _workload(context, gathered)
        current = 0 if gathered.deployment is None else gathered.observation.current
        ceiling = self._ceilings.of(service, workload, current)
        if gathered.deployment is None and ceiling.replicas == 0:
            found = condition_rules.of_no_room(ceiling.why)
            await self._hold(context, found, service.generation)
            return
        inputs = self._inputs(context, service, gathered, samples, ceiling)
        blocked = conflicts.obstacle is not None
        now_s = inputs.observation.now_s
        refused = objection(service, gathered, context.act, now_s, blocked=blocked)
        pinned = rebalancing_objection(service, gathered, context.act, now_s, blocked=blocked)
        policy = replace(inputs.policy, replacement_objection=refused, rebalancing_objection=pinned)
        inputs = replace(inputs, policy=policy)
        decided, failure = decide_or_keep(inputs, context.decide.service)
        decision = decided.decision
        if not gathered.own and _would_scale(service, decision):
            self._shared.moves(context.uid, moves=True)
            await self._converge(context)  # from reads of its own
            return
        context.decide.service = decided.after
        if failure is not None:
            self._on_failure(service, failure)
        self._show(context, inputs, decided, gathered)
        ours = gathered.deployment is None or may_scale(service, gathered)
        writable = ours and not blocked and context.act.can_scale(now_s)
        tick = TickResult(
            service=service,
            gathered=gathered,
            decision=decision,
            written=WriteResult(replicas=gathered.observation.current),
            preemption=self._competition.note(
                service, workload, decided.observation, decision, writable=writable
            ),
            ceiling=ceiling,
            conflicts=conflicts,
            route=inputs.route,
            gateway=decided.after.gateway,
            misses_per_cold_start=_misses_per_cold_start(service, decided),
            tokens=decided.tokens.measured,
            classes=decided.after.state.classes,
            generated=decided.after.rates.measurement,
            failure=failure,
            accelerators=_difference(service, workload),
        )
        desired = min(_desired(tick, decided.after.state, inputs.min_replicas), ceiling.replicas)
        self._ceilings.note(service, workload, decided.observation, desired)
        if replicas_to_write(service, gathered, desired) is not None:
            # Before the write that it explains: who finds the new replicas finds the reason.
            await self._report(context, tick, before_write=True)
        written = await self._act(context, tick, desired)
        if self._recording is not None:
            known = decided.observation if decided.after.gateway.fresh else gathered.observation
            self._recording.on_tick(service, inputs.policy, known, decision, written.replicas)
        await self._report(context, replace(tick, written=written))

    async def _gather(
        self, context: ServiceContext, service: InferenceService, samples: PodSamples
    ) -> Gathered:
        """Read; raises TargetUnusable and ClusterError."""
        period_s = self._period_s
        ahead_s = tick_period.read_ahead_s(len(self._cache), period_s)
        if service.spec.scaling.mode == "External":  # follows spec.replicas, not the decision
            ahead_s = 0.0
        gathered = await gather(
            self._cluster,
            self._metrics,
            self._clock,
            service,
            samples=samples,
            state=context.gather,
            initial_replicas=partial(context.initial_replicas, service),
            shared=self._shared,
            sharing=Sharing(ahead_s=ahead_s, period_s=period_s),
        )
        if self._warmer is not None:
            self._warmer.see(service, gathered.raw_pods)
        return gathered

    async def _conflicts(
        self, context: ServiceContext, service: InferenceService, gathered: Gathered, raw: Manifest
    ) -> ConflictStatus:
        """Return what other writers do to the replicas. Raises ClusterError."""
        now_s, current = self._clock.now_s(), gathered.observation.current
        created = raw["metadata"].get("creationTimestamp")
        scalers = await self._scalers.read(
            service, gathered.deployment, now_s, created_s=epoch_s(created) if created else 0.0
        )
        if gathered.deployment is not None:
            context.decide.overwrites = context.decide.overwrites.observe(
                current, scalers.writer, by_us=scalers.ours, now_s=now_s
            )
        return obstacles.check(service, scalers, context.decide.overwrites, current, now_s)

    def _inputs(
        self,
        context: ServiceContext,
        service: InferenceService,
        gathered: Gathered,
        samples: PodSamples,
        ceiling: Ceiling,
    ) -> DecisionInputs:
        """Collect what the decision needs, with what other services leave to this one."""
        lead_s = context.decide.service.state.cold_starts.p90_s or 0.0
        floor = service.floor_at(gathered.observation.now_s, lead_s=lead_s)
        policy = service.to_policy(tick_s=self._period_s, floor=floor)
        allocation = self._competition.allocation(context.uid)
        return DecisionInputs(
            service=service,
            policy=ceiling.applied(policy),
            min_replicas=floor.replicas,
            observation=replace(gathered.observation, allocation=allocation),
            samples=samples,
            route=self._route_status_of(service),
        )

    def _show(
        self,
        context: ServiceContext,
        inputs: DecisionInputs,
        decided: DecisionResult,
        gathered: Gathered,
    ) -> None:
        """Update metrics, the error budget and the console, on which nothing depends."""
        service, decision = inputs.service, decided.decision
        tokens_missed = any(one.missed for one in decided.tokens.measured)
        self._judge(context, inputs.policy, service, decision, tokens_missed=tokens_missed)
        self._recorder.decided(service, decision)
        self._recorder.gateway_rates(service, decided.after.gateway.rates)
        self._recorder.tokens_measured(
            service, decided.tokens.by_name(), decided.tokens.capacity_factor
        )
        self._recorder.generated(service, decision.generation, decided.after.rates.measurement)
        self._recorder.classes_measured(service, decided.after.state.classes)
        if self._listener is not None:
            self._listener.on_decision(
                Evaluation(
                    service=service,
                    policy=decided.policy,
                    state=decided.before,
                    observation=decided.observation,
                    post_inputs=decided.post_inputs,
                    pods=gathered.pods,
                    decision=decision,
                    accelerators_per_replica=_accelerators(_workload(context, gathered)),
                )
            )

    def _on_failure(self, service: InferenceService, failure: DecisionFailure) -> None:
        """Count an exception of the decision; log the first one in a row, and a restart."""
        self._recorder.decision_failed(service, type(failure.error).__name__)
        name = f"{service.namespace}/{service.name}"
        if failure.in_a_row == 1:
            _log.error("%s: the decision failed", name, exc_info=failure.error)
        if failure.restarted:
            words = "%s: what was learned is discarded, because the decision fails: %s"
            _log.warning(words, name, failure.text)

    def _judge(
        self,
        context: ServiceContext,
        policy: Policy,
        service: InferenceService,
        decision: Decision,
        *,
        tokens_missed: bool,
    ) -> None:
        """Enter into the error budget whether the SLO was met in the minute that has ended."""
        before, known = context.report.budget, context.decide.service
        gateway = known.gateway
        windows = gateway.windows if gateway.watched else known.state.windows
        freshness = gateway.freshness(decision.signals.freshness)
        if known.state.classes.judgement is not None:  # each class has its own target
            policy = replace(policy, latency_target_s=math.inf)
        budget = judged(
            before, policy, windows, freshness, decision.time_s, tokens_missed=tokens_missed
        )
        context.report.budget = budget
        kept, missed = budget.recent_kept & 1, budget.recent_missed & 1
        if budget is not before and kept | missed:
            self._recorder.judged(service, kept=bool(kept))

    async def _act(self, context: ServiceContext, tick: TickResult, replicas: int) -> WriteResult:
        """Write what has to be written, and remember that it was us. Raises ClusterError."""
        now_s = self._clock.now_s()
        evicted, unevicted = await evict(
            self._cluster, tick.service, tick.gathered, tick.decision, context.act, now_s
        )
        written = await Writes(
            cluster=self._cluster,
            service=tick.service,
            children=context.children,
            state=context.act,
            gathered=tick.gathered,
            replicas=replicas,
            now_s=self._clock.now_s(),
            services=len(self._cache),
            marks_pods=self._settings.marks_pods,
            was_ready=partial(context.report.was_ready, tick.service.generation),
            was_valid=partial(context.report.was_valid, tick.service.generation),
        ).run()
        written = replace(written, evicted=evicted, unevicted=unevicted)
        moves = _would_scale(tick.service, tick.decision) or not _is_settled(tick.gathered, written)
        self._shared.moves(context.uid, moves=moves)
        if written.scaled or written.created:
            context.decide.overwrites = context.decide.overwrites.written(
                written.replicas, self._clock.now_s()
            )
        return written

    @property
    def _period_s(self) -> float:
        return tick_period.period_s(self._tick_s, len(self._cache))

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
        found = condition_rules.of_failed_tick(f"{type(error).__name__}: {text}")
        await self._hold(context, found, generation)

    def learned_cost(self, uid: str) -> CostModel | None:
        """Return a service's cost as last fitted; None before its first decision."""
        context = self._contexts.get(uid)
        return None if context is None else context.decide.service.state.cost

    def forget(self, uid: str) -> None:
        """Discard the state of a deleted service."""
        context = self._contexts.pop(uid, None)
        self._shared.forget(uid)
        self._competition.forget(uid)
        self._ceilings.forget(uid)
        if self._warmer is not None:
            self._warmer.forget(uid)
        if self._recording is not None:
            self._recording.forget(uid)
        if context is not None:
            self._recorder.forgotten(context.report.namespace, context.report.name)
            if self._listener is not None:
                self._listener.on_removed(context.report.namespace, context.report.name)

    def withdraw(self) -> None:
        """Remove the metrics that it showed and stop warm-ups: another process decides now."""
        if self._warmer is not None:
            self._warmer.stop()
        for context in self._contexts.values():
            self._recorder.forgotten(context.report.namespace, context.report.name)

    async def _report(
        self, context: ServiceContext, tick: TickResult, *, before_write: bool = False
    ) -> None:
        report = self._reporter.announce if before_write else self._reporter.report
        await report(
            context.report,
            tick,
            context.checkpoint,
            self._clock.now_s(),
            services=len(self._cache),
        )

    async def _hold(
        self, context: ServiceContext, found: list[ConditionResult], generation: int
    ) -> None:
        """Report conditions alone: no child is written, no replica is added or removed."""
        await self._reporter.report_conditions(
            context.report, found, generation, self._clock.now_s()
        )

    async def _relist(self, namespace: str) -> None:
        """Find out whether it is the service itself that is gone."""
        begun = self._cache.begin_list()
        found, version = await self._cluster.list_at(API_VERSION, KIND, namespace)
        self._cache.replace(found, begun, version=version, namespace=namespace)


def _would_scale(service: InferenceService, decision: Decision) -> bool:
    if decision.replacement is not None and decision.replacement.deletes:
        return True
    return service.spec.scaling.mode != "Recommend" and decision.replicas != decision.current


def _is_settled(gathered: Gathered, written: WriteResult) -> bool:
    """Whether all replicas exist and are ready, so that there is nothing to wait for."""
    observation = gathered.observation
    ready = all(one.state is PodState.READY for one in observation.pods)
    there = len(observation.pods) + observation.unlisted_ready
    return ready and there == written.replicas and not observation.rolling


def _desired(tick: TickResult, state: State, min_replicas: int) -> int:
    """Return the replicas to request: the decision, unless it is advice or something blocks it."""
    service, current = tick.service, tick.gathered.observation.current
    if tick.conflicts.obstacle is not None and tick.gathered.deployment is not None:
        return current
    if service.spec.scaling.mode == "External":
        now_s = tick.decision.time_s
        return next_replicas(service, current, state.changes, now_s, min_replicas=min_replicas)
    return current if service.spec.scaling.mode == "Recommend" else tick.decision.replicas


def _misses_per_cold_start(service: InferenceService, decided: DecisionResult) -> float | None:
    if service.spec.routing.mode != "Gateway":
        return None
    return misses_per_cold_start(
        decided.decision.cold_start_s,
        service.spec.slo.whole_answer.seconds,
        decided.after.idle.arrivals_rps,
    )


def _workload(context: ServiceContext, gathered: Gathered) -> Manifest:
    """Return the manifest that the replicas follow; empty for a target that is gone."""
    return context.children[-1] if context.children else gathered.deployment or {}


def _accelerators(workload: Manifest) -> int | None:
    template = template_of(workload)
    return None if template is None else accelerators.counted(accelerators.of_template(template))


def _difference(service: InferenceService, workload: Manifest) -> str:
    template = template_of(workload)
    if template is None:
        return ""
    return accelerators.difference(service, accelerators.of_template(template))
