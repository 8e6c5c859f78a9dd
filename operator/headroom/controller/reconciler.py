"""One tick of one service: gather, decide, act, report."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from headroom.api import InferenceService, InvalidSpec
from headroom.api.kind import API_VERSION, KIND
from headroom.controller.act.act_tick import Acted, act, replicas_to_write
from headroom.controller.decide.decide_tick import DecisionInputs, DecisionResult, decide_tick
from headroom.controller.decide.external_scaling import followed
from headroom.controller.decide.scale_to_zero import misses_per_cold_start
from headroom.controller.gather.conflicts import Conflicts
from headroom.controller.gather.gather_tick import Gathered, gather
from headroom.controller.gather.metrics_reader import Measuring, samples_of
from headroom.controller.gather.route_status import NOT_ROUTED, RouteStatus
from headroom.controller.gather.shared_reads import SharedReads, Sharing, Upcoming
from headroom.controller.gather.workload import TargetUnusable
from headroom.controller.ports import Clock, Cluster, Recorder
from headroom.controller.report import condition_rules
from headroom.controller.report.condition_result import Found, Tick
from headroom.controller.report.error_budget import judged
from headroom.controller.report.evaluation import Evaluation, Onlooker
from headroom.controller.report.recording import Recording
from headroom.controller.report.reporter import Reporter
from headroom.controller.scheduling import tick_period
from headroom.controller.service_context import Memory, remember
from headroom.controller.services.service_cache import ServiceCache
from headroom.controller.sharing.ceilings import NO_CAPS, Caps, Ceiling, Ceilings
from headroom.controller.sharing.competition import Competition
from headroom.controller.warmup import Requester, Warmer
from headroom.errors import NotFound, ScrapeFailed
from headroom.resources.settings import DEFAULTS, Settings
from headroom.scaling import Decision, Policy, State
from headroom.scaling.values import CostModel, PodState
from headroom.telemetry.errors import TelemetryError
from headroom.telemetry.pod_samples import PodSamples

_log = logging.getLogger(__name__)


class Reconciler:
    """Keeps what has to be known from tick to tick, one memory per UID."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        measuring: Measuring,
        clock: Clock,
        cache: ServiceCache,
        recorder: Recorder,
        tick_s: float,
        instance: str,
        recording: Recording | None = None,
        onlooker: Onlooker | None = None,
        caps: Caps = NO_CAPS,
        requester: Requester | None = None,
        settings: Settings = DEFAULTS,
        route_status: Callable[[InferenceService], RouteStatus] | None = None,
        upcoming: Upcoming = lambda _: (),
        clusterwide: bool = False,
    ) -> None:
        self._cluster = cluster
        self._measuring = measuring
        self._clock = clock
        self._cache = cache
        self._recorder = recorder
        self._recording = recording
        self._onlooker = onlooker
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
        self._conflicts = Conflicts(cluster, cache.claims)
        self._memories: dict[str, Memory] = {}
        self._shared = SharedReads(cluster, cache, upcoming, clusterwide=clusterwide)

    async def tick(self, uid: str) -> None:
        """Converge once.

        Raises ClusterError where the API does not let it; the next tick starts from the cluster.
        """
        raw = self._cache.get(uid)
        if raw is None or raw["metadata"].get("deletionTimestamp"):
            return
        memory = self._memories.get(uid)
        if memory is None:
            memory = self._memories[uid] = remember(raw, self._clock.now_s())
        try:
            await self._converge(memory)
        except NotFound:
            await self._look_again(memory.namespace)
            if self._cache.get(uid) is not None:
                raise

    def told_of_pods(self, uid: str) -> None:
        """Take in that a service's pods have changed: what was listed before is too old for it."""
        self._shared.told(uid)

    async def _converge(self, memory: Memory) -> None:
        """Gather, decide, act, report; what cannot be acted on is reported, and changes nothing."""
        raw = self._cache.get(memory.uid)
        if raw is None:
            return
        try:
            service = memory.parse(raw, self._settings, self._cache.same)
            samples = memory.samples = samples_of(service, memory.samples)
            gathered = await self._gather(memory, service, samples)
        except InvalidSpec as error:
            found = condition_rules.of_invalid_spec(str(error))
            await self._hold(memory, found, raw["metadata"].get("generation", 0))
            return
        except TargetUnusable as error:
            found = condition_rules.of_unusable_target(error)
            await self._hold(memory, found, raw["metadata"].get("generation", 0))
            return
        others = await self._conflicts.look(memory, service, gathered, self._clock.now_s())
        memory.enter(service.spec.scaling.mode)
        follows = memory.children[-1] if memory.children else gathered.deployment or {}
        stands = 0 if gathered.deployment is None else gathered.observation.current
        ceiling = self._ceilings.of(service, follows, stands)
        if gathered.deployment is None and ceiling.replicas == 0:
            await self._hold(memory, condition_rules.of_no_room(ceiling.why), service.generation)
            return
        question = self._question(memory, service, gathered, samples, ceiling)
        decided = decide_tick(question, memory.learnt)
        decision = decided.decision
        if not gathered.own and _would_scale(service, decision):
            self._shared.moves(memory.uid, moves=True)
            await self._converge(memory)  # from reads of its own
            return
        memory.learnt = decided.after
        self._show(memory, question, decided, gathered)
        tick = Tick(
            service=service,
            gathered=gathered,
            decision=decision,
            acted=Acted(replicas=gathered.observation.current),
            claim=self._competition.note(service, follows, decided.observation, decision),
            ceiling=ceiling,
            others=others,
            route=question.route,
            seen=decided.after.gateway,
            misses_per_cold_start=_misses_per_cold_start(service, decided),
            tokens=decided.tokens.measured,
        )
        asked = min(_asked(tick, memory.learnt.state), ceiling.replicas)
        self._ceilings.note(service, follows, decided.observation, asked)
        if replicas_to_write(service, gathered, asked) is not None:
            # History before the act it explains: whoever finds the new replicas finds the reason.
            await self._report(memory, tick)
        acted = await self._act(memory, tick, asked)
        if self._recording is not None:
            known = decided.observation if decided.after.gateway.fresh else gathered.observation
            self._recording.ticked(service, question.policy, known, decision, acted.replicas)
        await self._report(memory, replace(tick, acted=acted))

    async def _gather(
        self, memory: Memory, service: InferenceService, samples: PodSamples
    ) -> Gathered:
        """Read; raises TargetUnusable and ClusterError."""
        period_s = self._period_s
        ahead_s = tick_period.read_ahead_s(len(self._cache), period_s)
        if service.spec.scaling.mode == "External":  # follows a wish, whatever is decided
            ahead_s = 0.0
        gathered = await gather(
            self._cluster,
            self._measuring,
            self._clock,
            service,
            samples=samples,
            lineage=memory.lineage,
            replicas_if_absent=memory.replicas_if_absent(service),
            shared=self._shared,
            sharing=Sharing(ahead_s=ahead_s, period_s=period_s),
        )
        if self._warmer is not None:
            self._warmer.see(service, gathered.raw_pods)
        return gathered

    def _question(
        self,
        memory: Memory,
        service: InferenceService,
        gathered: Gathered,
        samples: PodSamples,
        ceiling: Ceiling,
    ) -> DecisionInputs:
        """Put together what the decision is asked, with what others leave to the service."""
        lead_s = memory.learnt.state.cold_starts.p90_s or 0.0
        floor = service.floor_at(gathered.observation.now_s, lead_s=lead_s)
        policy = service.to_policy(tick_s=self._period_s, floor=floor)
        grant = self._competition.grant(memory.uid)
        return DecisionInputs(
            service=service,
            policy=ceiling.applied(policy),
            min_replicas=floor.replicas,
            observation=replace(gathered.observation, allocation=grant),
            samples=samples,
            route=self._route_status_of(service),
        )

    def _show(
        self, memory: Memory, question: DecisionInputs, decided: DecisionResult, gathered: Gathered
    ) -> None:
        """Tell metrics, the error budget and the console, on which nothing depends."""
        service, decision = question.service, decided.decision
        self._judge(memory, question.policy, service, decision)
        self._recorder.decided(service, decision)
        self._recorder.seen_by_clients(service, decided.after.gateway.rates)
        self._recorder.tokens_measured(
            service, decided.tokens.by_name(), decided.tokens.capacity_factor
        )
        if self._onlooker is not None:
            self._onlooker.evaluated(
                Evaluation(
                    service=service,
                    policy=decided.policy,
                    state=decided.before,
                    observation=decided.observation,
                    post_inputs=decided.post_inputs,
                    pods=gathered.pods,
                    decision=decision,
                )
            )

    def _judge(
        self, memory: Memory, policy: Policy, service: InferenceService, decision: Decision
    ) -> None:
        """Enter into the error budget whether the promise held in the minute that has ended."""
        before, seen = memory.budget, memory.learnt.gateway
        windows = seen.windows if seen.watched else memory.learnt.state.windows
        freshness = seen.freshness(decision.signals.freshness)
        memory.budget = judged(before, policy, windows, freshness, decision.time_s)
        kept, missed = memory.budget.recent_kept & 1, memory.budget.recent_missed & 1
        if memory.budget is not before and kept | missed:
            self._recorder.judged(service, kept=bool(kept))

    async def _act(self, memory: Memory, tick: Tick, asked: int) -> Acted:
        """Write what has to be written, and remember that it was us. Raises ClusterError."""
        acted = await act(
            self._cluster,
            tick.service,
            memory,
            tick.gathered,
            asked,
            self._clock.now_s(),
            services=len(self._cache),
        )
        moves = _would_scale(tick.service, tick.decision) or not _stands_still(tick.gathered, acted)
        self._shared.moves(memory.uid, moves=moves)
        if acted.scaled or acted.created:
            memory.contest = memory.contest.wrote(acted.replicas, self._clock.now_s())
        return acted

    @property
    def _period_s(self) -> float:
        return tick_period.period_s(self._tick_s, len(self._cache))

    async def _on_warm(self, service: InferenceService, pod: str, address: str) -> None:
        """What warmed a pod is no load: remember what it counted of it."""
        memory = self._memories.get(service.uid)
        if memory is None or memory.samples is None:
            return
        try:
            await self._measuring.begin(service, pod, address, memory.samples)
        except (ScrapeFailed, TelemetryError) as error:
            name = f"{service.namespace}/{service.name}"
            _log.warning("%s: what warmed a pod counts as load, since %s", name, error)

    async def report_failure(self, uid: str, error: Exception) -> None:
        """Say in a condition that the last tick broke off.

        Raises ClusterError where that cannot be written.
        """
        memory, raw = self._memories.get(uid), self._cache.get(uid)
        if memory is None or raw is None:
            return
        generation = raw["metadata"].get("generation", 0)
        words = str(error) or "it was not done in time"
        found = condition_rules.of_failed_tick(f"{type(error).__name__}: {words}")
        await self._reporter.report_found(memory, found, generation, self._clock.now_s())

    def learned_cost(self, uid: str) -> CostModel | None:
        """Return a service's cost as last fitted; None before its first decision."""
        memory = self._memories.get(uid)
        return None if memory is None else memory.learnt.state.cost

    def forget(self, uid: str) -> None:
        """Drop what is known of a service that is gone."""
        memory = self._memories.pop(uid, None)
        self._shared.forget(uid)
        self._competition.forget(uid)
        self._ceilings.forget(uid)
        if self._warmer is not None:
            self._warmer.forget(uid)
        if self._recording is not None:
            self._recording.forget(uid)
        if memory is not None:
            self._recorder.forgotten(memory.namespace, memory.name)
            if self._onlooker is not None:
                self._onlooker.forgotten(memory.namespace, memory.name)

    def withdraw(self) -> None:
        """Take back the figures that it showed, and warm nothing more: it does not decide."""
        if self._warmer is not None:
            self._warmer.stop()
        for memory in self._memories.values():
            self._recorder.forgotten(memory.namespace, memory.name)

    async def _report(self, memory: Memory, tick: Tick) -> None:
        now_s = self._clock.now_s()
        await self._reporter.report(memory, tick, now_s, services=len(self._cache))

    async def _hold(self, memory: Memory, found: list[Found], generation: int) -> None:
        """What cannot be acted on changes nothing: no child is written, no replica is moved."""
        await self._reporter.report_found(memory, found, generation, self._clock.now_s())

    async def _look_again(self, namespace: str) -> None:
        """Find out whether it is the service itself that is gone."""
        begun = self._cache.begin_list()
        found, version = await self._cluster.list_at(API_VERSION, KIND, namespace)
        self._cache.replace(found, begun, version=version, namespace=namespace)


def _would_scale(service: InferenceService, decision: Decision) -> bool:
    return service.spec.scaling.mode != "Recommend" and decision.replicas != decision.current


def _stands_still(gathered: Gathered, acted: Acted) -> bool:
    """Whether all replicas are there and ready, so that there is nothing to wait for."""
    observation = gathered.observation
    ready = all(one.state is PodState.READY for one in observation.pods)
    there = len(observation.pods) + observation.unlisted_ready
    return ready and there == acted.replicas and not observation.rolling


def _asked(tick: Tick, state: State) -> int:
    """Return what to ask for: the decision, where it is ours to make and nobody objects."""
    service, current = tick.service, tick.gathered.observation.current
    if tick.others.obstacle is not None and tick.gathered.deployment is not None:
        return current
    if service.spec.scaling.mode == "External":
        return followed(service, current, state.changes, tick.decision.time_s)
    return current if service.spec.scaling.mode == "Recommend" else tick.decision.replicas


def _misses_per_cold_start(service: InferenceService, decided: DecisionResult) -> float | None:
    if service.spec.routing.mode != "Gateway":
        return None
    return misses_per_cold_start(
        decided.decision.cold_start_s,
        service.spec.slo.latency.target.seconds,
        decided.after.idle.arrivals_rps,
    )
