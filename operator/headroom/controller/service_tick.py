"""One tick of one service: gather, decide, act, report."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headroom.api import InferenceService, InvalidSpec
from headroom.controller.act.scale_writer import replicas_to_write
from headroom.controller.act.write_result import WriteResult
from headroom.controller.decide.decide_tick import DecisionInputs, DecisionResult
from headroom.controller.decide.recovery import decide_or_keep
from headroom.controller.decide.requested_replicas import would_scale
from headroom.controller.decide.scaling_conflicts import ConflictStatus
from headroom.controller.gather.gather_tick import Gathered
from headroom.controller.gather.workloads.workload import TargetUnusable
from headroom.controller.report.conditions import held_conditions
from headroom.controller.report.conditions.condition_result import ConditionResult, TickResult
from headroom.controller.report.display import Display
from headroom.controller.report.recording import Recording
from headroom.controller.report.reporter import Reporter
from headroom.controller.service_context import ServiceContext
from headroom.controller.service_decision import ServiceDecision
from headroom.controller.service_reads import ServiceReads
from headroom.controller.service_writes import ServiceWrites
from headroom.controller.services.service_cache import ServiceCache
from headroom.controller.sharing.caps import Ceiling
from headroom.resources import accelerators


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceTick:
    """The steps of a tick, with the state that all services share."""

    reads: ServiceReads
    decision: ServiceDecision
    writes: ServiceWrites
    cache: ServiceCache
    reporter: Reporter
    display: Display
    recording: Recording | None

    def forget(self, uid: str) -> None:
        """Discard the shared state of a deleted service."""
        self.reads.forget(uid)
        self.decision.forget(uid)
        if self.recording is not None:
            self.recording.forget(uid)

    async def run(self, context: ServiceContext) -> None:
        """Gather, decide, act, report; a service that cannot be scaled is only reported.

        Raises ClusterError.
        """
        raw = self.cache.get(context.uid)
        if raw is None:
            return
        generation = raw["metadata"].get("generation", 0)
        try:
            service, gathered = await self.reads.gather(context, raw)
        except InvalidSpec as error:
            await self.hold(context, held_conditions.of_invalid_spec(str(error)), generation)
            return
        except TargetUnusable as error:
            await self.hold(context, held_conditions.of_unusable_target(error), generation)
            return
        conflicts = await self.reads.conflicts(context, service, gathered, raw)
        context.decide.reset_on_mode_change(service.spec.scaling.mode)
        ceiling = self.decision.ceiling(context, service, gathered)
        if gathered.deployment is None and ceiling.replicas == 0:
            await self.hold(context, held_conditions.of_no_room(ceiling.why), generation)
            return
        await self._decide(context, service, gathered, conflicts, ceiling)

    async def _decide(
        self,
        context: ServiceContext,
        service: InferenceService,
        gathered: Gathered,
        conflicts: ConflictStatus,
        ceiling: Ceiling,
    ) -> None:
        """Decide on the gathered values, then act and report. Raises ClusterError."""
        blocked = conflicts.conflict is not None
        inputs = self.decision.inputs(
            context, service, gathered, ceiling, tick_s=self.reads.period_s, blocked=blocked
        )
        decided, failure = decide_or_keep(inputs, context.decide.service)
        if not gathered.own and would_scale(service, decided.decision):
            self.reads.shared.moves(context.uid, moves=True)
            await self.run(context)  # from reads of its own
            return
        context.decide.service = decided.after
        if failure is not None:
            self.display.failed(service, failure)
        held = accelerators.of_workload(context.workload(gathered.deployment))
        self.display.show(context.report, inputs, decided, gathered.pods, held)
        after = decided.after
        preemption = self.decision.yielding(context, gathered, inputs, decided, blocked=blocked)
        rollout = self.decision.rollout(
            context, service, gathered, decided=decided.decision.replicas
        )
        if rollout is not None:
            context.roll(rollout.update)
        desired = self.decision.requested(
            context,
            gathered,
            inputs,
            decided,
            ceiling,
            blocked=blocked,
            surges=rollout is not None and rollout.surges,
        )
        tick = TickResult(
            service=service,
            gathered=gathered,
            decision=decided.decision,
            written=WriteResult(replicas=gathered.observation.current),
            requested=desired,
            rollout=rollout.why if rollout is not None else "",
            preemption=preemption,
            accelerators="" if held is None else accelerators.difference(service, held),
            ceiling=ceiling,
            conflicts=conflicts,
            route=inputs.route,
            gateway=after.gateway,
            misses_per_cold_start=after.idle.misses_per_cold_start(service, decided.decision),
            tokens=decided.tokens.measured,
            classes=after.state.classes,
            generated=after.rates.measurement,
            failure=failure,
        )
        await self._write(context, tick, inputs, decided, desired)

    async def _write(
        self,
        context: ServiceContext,
        tick: TickResult,
        inputs: DecisionInputs,
        decided: DecisionResult,
        desired: int,
    ) -> None:
        """Act, and report the result. Raises ClusterError."""
        service, gathered = tick.service, tick.gathered
        if replicas_to_write(service, gathered, desired) is not None:
            # Before the write that it explains: who finds the new replicas finds the reason.
            await self._report(context, tick, before_write=True)
        written = await self.writes.run(context, tick, desired)
        if self.recording is not None:
            known = decided.observation if decided.after.gateway.fresh else gathered.observation
            self.recording.on_tick(service, inputs.policy, known, tick.decision, written.replicas)
        await self._report(context, replace(tick, written=written))

    async def _report(
        self, context: ServiceContext, tick: TickResult, *, before_write: bool = False
    ) -> None:
        report = self.reporter.announce if before_write else self.reporter.report
        await report(
            context.report,
            tick,
            context.checkpoint,
            self.reads.clock.now_s(),
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
        await self.reporter.report_conditions(
            context.report, found, generation, self.reads.clock.now_s()
        )
