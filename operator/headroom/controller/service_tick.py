"""One tick of one service: gather, decide, act, report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from headroom.api import InferenceService, InvalidSpec
from headroom.api.timestamps import epoch_s
from headroom.controller.act.act_tick import Writes
from headroom.controller.act.eviction import evict, objection, rebalancing_objection
from headroom.controller.act.scale_writer import may_scale, replicas_to_write
from headroom.controller.act.write_result import WriteResult
from headroom.controller.decide import obstacles
from headroom.controller.decide.decide_tick import DecisionInputs, DecisionResult
from headroom.controller.decide.external_scaling import next_replicas
from headroom.controller.decide.obstacles import ConflictStatus
from headroom.controller.decide.recovery import decide_or_keep
from headroom.controller.decide.scale_to_zero import misses_per_cold_start
from headroom.controller.gather.gather_tick import Gathered, gather
from headroom.controller.gather.metrics_reader import MetricsReader, samples_of
from headroom.controller.gather.other_scalers import OtherScalersReader
from headroom.controller.gather.route_status import RouteStatus
from headroom.controller.gather.shared_reads import SharedReads, Sharing
from headroom.controller.gather.workload import TargetUnusable
from headroom.controller.ports import Clock, Cluster, Manifest
from headroom.controller.report import held_conditions
from headroom.controller.report.condition_result import ConditionResult, TickResult
from headroom.controller.report.display import Display
from headroom.controller.report.recording import Recording
from headroom.controller.report.reporter import Reporter
from headroom.controller.scheduling import tick_period
from headroom.controller.service_context import ServiceContext
from headroom.controller.services.service_cache import ServiceCache
from headroom.controller.sharing.ceilings import Ceiling, Ceilings, template_of
from headroom.controller.sharing.competition import Competition
from headroom.controller.warmup import Warmer
from headroom.resources import accelerators
from headroom.resources.settings import Settings
from headroom.scaling import Decision, State
from headroom.scaling.values.observation import PodState


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceTick:
    """The steps of a tick, and what all services share."""

    cluster: Cluster
    metrics: MetricsReader
    clock: Clock
    cache: ServiceCache
    scalers: OtherScalersReader
    shared: SharedReads
    ceilings: Ceilings
    competition: Competition
    reporter: Reporter
    display: Display
    route_status: Callable[[InferenceService], RouteStatus]
    settings: Settings
    tick_s: float
    recording: Recording | None
    warmer: Warmer | None

    @property
    def period_s(self) -> float:
        """Seconds between two ticks of a service."""
        return tick_period.period_s(self.tick_s, len(self.cache))

    def forget(self, uid: str) -> None:
        """Discard what is shared of a deleted service."""
        self.shared.forget(uid)
        self.competition.forget(uid)
        self.ceilings.forget(uid)
        if self.warmer is not None:
            self.warmer.forget(uid)
        if self.recording is not None:
            self.recording.forget(uid)

    async def run(self, context: ServiceContext) -> None:
        """Gather, decide, act, report; what cannot be acted on is reported, and changes nothing.

        Raises ClusterError.
        """
        raw = self.cache.get(context.uid)
        if raw is None:
            return
        generation = raw["metadata"].get("generation", 0)
        try:
            service, gathered = await self._read(context, raw)
        except InvalidSpec as error:
            await self.hold(context, held_conditions.of_invalid_spec(str(error)), generation)
            return
        except TargetUnusable as error:
            await self.hold(context, held_conditions.of_unusable_target(error), generation)
            return
        conflicts = await self._conflicts(context, service, gathered, raw)
        context.decide.reset_on_mode_change(service.spec.scaling.mode)
        workload = _workload(context, gathered)
        current = 0 if gathered.deployment is None else gathered.observation.current
        ceiling = self.ceilings.of(service, workload, current)
        if gathered.deployment is None and ceiling.replicas == 0:
            await self.hold(context, held_conditions.of_no_room(ceiling.why), generation)
            return
        blocked = conflicts.obstacle is not None
        inputs = self._inputs(context, service, gathered, ceiling, blocked=blocked)
        decided, failure = decide_or_keep(inputs, context.decide.service)
        if not gathered.own and _would_scale(service, decided.decision):
            self.shared.moves(context.uid, moves=True)
            await self.run(context)  # from reads of its own
            return
        context.decide.service = decided.after
        if failure is not None:
            self.display.failed(service, failure)
        self.display.show(context.report, inputs, decided, gathered.pods, _accelerators(workload))
        tick = TickResult(
            service=service,
            gathered=gathered,
            decision=decided.decision,
            written=WriteResult(replicas=gathered.observation.current),
            preemption=self._compete(context, gathered, service, decided, blocked=blocked),
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
        tick = replace(tick, requested=desired)
        self.ceilings.note(service, workload, decided.observation, desired)
        await self._write(context, tick, inputs, decided, desired)

    async def _write(
        self,
        context: ServiceContext,
        tick: TickResult,
        inputs: DecisionInputs,
        decided: DecisionResult,
        desired: int,
    ) -> None:
        """Act, and report what came of it. Raises ClusterError."""
        service, gathered = tick.service, tick.gathered
        if replicas_to_write(service, gathered, desired) is not None:
            # Before the write that it explains: who finds the new replicas finds the reason.
            await self._report(context, tick, before_write=True)
        written = await self._act(context, tick, desired)
        if self.recording is not None:
            known = decided.observation if decided.after.gateway.fresh else gathered.observation
            self.recording.on_tick(service, inputs.policy, known, tick.decision, written.replicas)
        await self._report(context, replace(tick, written=written))

    async def _read(
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
        return service, gathered

    async def _conflicts(
        self, context: ServiceContext, service: InferenceService, gathered: Gathered, raw: Manifest
    ) -> ConflictStatus:
        """Return what other writers do to the replicas. Raises ClusterError."""
        now_s, current = self.clock.now_s(), gathered.observation.current
        created = raw["metadata"].get("creationTimestamp")
        scalers = await self.scalers.read(
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
        ceiling: Ceiling,
        *,
        blocked: bool,
    ) -> DecisionInputs:
        """Collect what the decision needs, with what other services leave to this one."""
        now_s, samples = gathered.observation.now_s, context.gather.samples
        assert samples is not None
        lead_s = context.decide.service.state.cold_starts.p90_s or 0.0
        floor = service.floor_at(now_s, lead_s=lead_s)
        refused = objection(service, gathered, context.act, now_s, blocked=blocked)
        pinned = rebalancing_objection(service, gathered, context.act, now_s, blocked=blocked)
        policy = ceiling.applied(service.to_policy(tick_s=self.period_s, floor=floor))
        allocation = self.competition.allocation(context.uid)
        return DecisionInputs(
            service=service,
            policy=replace(policy, replacement_objection=refused, rebalancing_objection=pinned),
            min_replicas=floor.replicas,
            observation=replace(gathered.observation, allocation=allocation),
            samples=samples,
            route=self.route_status(service),
        )

    def _compete(
        self,
        context: ServiceContext,
        gathered: Gathered,
        service: InferenceService,
        decided: DecisionResult,
        *,
        blocked: bool,
    ) -> str:
        """Let the others see this service; return which of them yield to it."""
        ours = gathered.deployment is None or may_scale(service, gathered)
        now_s = gathered.observation.now_s
        return self.competition.note(
            service,
            _workload(context, gathered),
            decided.observation,
            decided.decision,
            writable=ours and not blocked and context.act.can_scale(now_s),
        )

    async def _act(self, context: ServiceContext, tick: TickResult, replicas: int) -> WriteResult:
        """Write what has to be written, and remember that it was us. Raises ClusterError."""
        now_s = self.clock.now_s()
        evicted, unevicted = await evict(
            self.cluster, tick.service, tick.gathered, tick.decision, context.act, now_s
        )
        written = await Writes(
            cluster=self.cluster,
            service=tick.service,
            children=context.children,
            state=context.act,
            gathered=tick.gathered,
            replicas=replicas,
            now_s=self.clock.now_s(),
            services=len(self.cache),
            marks_pods=self.settings.marks_pods,
            was_ready=partial(context.report.was_ready, tick.service.generation),
            was_valid=partial(context.report.was_valid, tick.service.generation),
        ).run()
        written = replace(written, evicted=evicted, unevicted=unevicted)
        moves = _would_scale(tick.service, tick.decision) or not _is_settled(tick.gathered, written)
        self.shared.moves(context.uid, moves=moves)
        if written.scaled or written.created:
            context.decide.overwrites = context.decide.overwrites.written(
                written.replicas, self.clock.now_s()
            )
        return written

    async def _report(
        self, context: ServiceContext, tick: TickResult, *, before_write: bool = False
    ) -> None:
        report = self.reporter.announce if before_write else self.reporter.report
        await report(
            context.report,
            tick,
            context.checkpoint,
            self.clock.now_s(),
            services=len(self.cache),
        )

    async def hold(
        self, context: ServiceContext, found: list[ConditionResult], generation: int
    ) -> None:
        """Report that no decision is made: no child is written, no replica is added or removed."""
        self.display.hold(context.report)
        await self.report_only(context, found, generation)

    async def report_only(
        self, context: ServiceContext, found: list[ConditionResult], generation: int
    ) -> None:
        """Report conditions alone; the figures of the last decision stay."""
        await self.reporter.report_conditions(context.report, found, generation, self.clock.now_s())


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
