"""One tick of one service: gather, decide, act, report."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from headroom.api import InferenceService, InvalidSpec
from headroom.api.kind import API_VERSION, KIND
from headroom.controller import pace
from headroom.controller.cache import ServiceCache
from headroom.controller.evaluation import Evaluation, Onlooker
from headroom.controller.judging.at_the_gateway import turned_away
from headroom.controller.memory import Memory, remember
from headroom.controller.others.conflicts import Conflicts
from headroom.controller.others.external import followed
from headroom.controller.ports import Clock, Cluster, Recorder
from headroom.controller.reads.gather import Gathered, gather
from headroom.controller.reads.measuring import Measuring, samples_of
from headroom.controller.reads.shared_reads import SharedReads, Sharing, Upcoming
from headroom.controller.reads.workload import TargetUnusable
from headroom.controller.reports import findings
from headroom.controller.reports.error_budget import judged
from headroom.controller.reports.found import Found, Tick
from headroom.controller.reports.recording import Recording
from headroom.controller.reports.report import Reporter
from headroom.controller.routing.standing import NOWHERE, Standing
from headroom.controller.sharing.ceilings import NO_CAPS, Caps, Ceilings
from headroom.controller.sharing.competition import Competition
from headroom.controller.tokens.promises import NOTHING_PROMISED, TokenPromises
from headroom.controller.warmth import Requester, Warmer
from headroom.controller.writes.act import Acted, act, replicas_to_write
from headroom.controller.zero.rule import misses_per_wake_up, settled
from headroom.errors import NotFound, ScrapeFailed
from headroom.resources.settings import DEFAULTS, Settings
from headroom.scaling import Decision, Policy, decide
from headroom.scaling.values import PodState
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
        standing: Callable[[InferenceService], Standing] | None = None,
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
        self._standing_of = standing or (lambda _: NOWHERE)
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
            await self._evaluate(memory)
        except NotFound:
            await self._look_again(memory.namespace)
            if self._cache.get(uid) is not None:
                raise

    def told_of_pods(self, uid: str) -> None:
        """Take in that a service's pods have changed: what was listed before is too old for it."""
        self._shared.told(uid)

    async def _evaluate(self, memory: Memory) -> None:
        raw = self._cache.get(memory.uid)
        if raw is None:
            return
        try:
            service = memory.parse(raw, self._settings)
        except InvalidSpec as error:
            found = findings.of_invalid_spec(str(error))
            await self._hold(memory, found, raw["metadata"].get("generation", 0))
            return
        memory.samples = samples_of(service, memory.samples)
        period_s = pace.period_s(self._tick_s, len(self._cache))
        ahead_s = pace.read_ahead_s(len(self._cache), period_s)
        if service.spec.scaling.mode == "External":  # follows a wish, whatever is decided
            ahead_s = 0.0
        try:
            gathered = await gather(
                self._cluster,
                self._measuring,
                self._clock,
                service,
                samples=memory.samples,
                lineage=memory.lineage,
                replicas_if_absent=memory.replicas_if_absent(service),
                shared=self._shared,
                sharing=Sharing(ahead_s=ahead_s, period_s=period_s),
            )
        except TargetUnusable as error:
            await self._hold(memory, findings.of_unusable_target(error), service.generation)
            return
        if self._warmer is not None:
            self._warmer.see(service, gathered.raw_pods)
        others = await self._conflicts.look(memory, service, gathered, self._clock.now_s())
        memory.enter(service.spec.scaling.mode)
        floor = service.floor_at(
            gathered.observation.now_s, lead_s=memory.state.cold_starts.p90_s or 0.0
        )
        follows = memory.children[-1] if memory.children else gathered.deployment or {}
        stands = 0 if gathered.deployment is None else gathered.observation.current
        ceiling = self._ceilings.of(service, follows, stands)
        if gathered.deployment is None and ceiling.replicas == 0:
            await self._hold(memory, findings.of_no_room(ceiling.why), service.generation)
            return
        policy = ceiling.applied(service.to_policy(tick_s=period_s, floor=floor))
        standing = self._standing_of(service)
        tally = standing.tally if standing.gateways else None
        memory.seen = memory.seen.observe(policy, tally, gathered.observation.now_s)
        observation = replace(
            gathered.observation,
            samples=turned_away(tally, gathered.observation.samples),
            grant=self._competition.grant(memory.uid),
        )
        before, promised, quiet = memory.state, memory.tokens, memory.quiet
        tokens = _tokens(memory.tokens, service, memory.samples, observation.now_s)
        asked_of = tokens.acting(policy)
        decision, state = decide(asked_of, before, observation)
        decision, memory.state = tokens.held(policy, before, state, decision)
        memory.tokens = tokens.learnt(policy, decision)
        decision, memory.state = memory.seen.held(policy, before, memory.state, decision)
        memory.quiet = memory.quiet.observe(
            memory.state, decision, standing, observation.now_s, 3.0 * policy.tick_s
        )
        decision = settled(
            decision,
            observation,
            memory.quiet,
            standing,
            least=floor.replicas,
            idle_s=service.spec.scaling.zero.idle_for.seconds,
        )
        decision = memory.seen.judged(decision)
        if not gathered.own and _would_scale(service, decision):
            self._shared.moves(memory.uid, moves=True)
            memory.state, memory.tokens, memory.quiet = before, promised, quiet
            await self._evaluate(memory)  # from reads of its own
            return
        self._judge(memory, service, policy, decision)
        claim = self._competition.note(service, follows, observation, decision)
        self._recorder.decided(service, decision)
        self._recorder.seen_by_clients(service, memory.seen.rates)
        self._recorder.tokens_measured(service, tokens.by_name(), tokens.room)
        if self._onlooker is not None:
            self._onlooker.evaluated(
                Evaluation(
                    service=service,
                    policy=asked_of,
                    state=before,
                    observation=observation,
                    pods=gathered.pods,
                    decision=decision,
                )
            )
        tick = Tick(
            service=service,
            gathered=gathered,
            decision=decision,
            acted=Acted(replicas=gathered.observation.current),
            claim=claim,
            ceiling=ceiling,
            others=others,
            standing=standing,
            seen=memory.seen,
            misses_per_wake_up=(
                misses_per_wake_up(
                    decision.cold_start_s,
                    service.spec.slo.latency.target.seconds,
                    memory.quiet.arrivals_rps,
                )
                if service.spec.routing.mode == "Gateway"
                else None
            ),
            tokens=tokens.measured,
        )
        asked = decision.replicas
        if others.obstacle is not None and gathered.deployment is not None:
            asked = observation.current
        elif service.spec.scaling.mode == "External":
            changes = memory.state.changes
            asked = followed(service, observation.current, changes, decision.time_s)
        elif service.spec.scaling.mode == "Recommend":
            asked = observation.current
        asked = min(asked, ceiling.replicas)
        self._ceilings.note(service, follows, observation, asked)
        if replicas_to_write(service, gathered, asked) is not None:
            # History before the act it explains: whoever finds the new replicas finds the reason.
            await self._report(memory, tick)
        acted = await act(
            self._cluster,
            service,
            memory,
            gathered,
            asked,
            self._clock.now_s(),
            services=len(self._cache),
        )
        moves = _would_scale(service, decision) or not _stands_still(gathered, acted)
        self._shared.moves(memory.uid, moves=moves)
        if acted.scaled or acted.created:
            memory.contest = memory.contest.wrote(acted.replicas, self._clock.now_s())
        if self._recording is not None:
            known = observation if memory.seen.fresh else gathered.observation
            self._recording.ticked(service, policy, known, decision, acted.replicas)
        await self._report(memory, replace(tick, acted=acted))

    def _judge(
        self, memory: Memory, service: InferenceService, policy: Policy, decision: Decision
    ) -> None:
        """Enter into the error budget whether the promise held in the minute that has ended."""
        before = memory.budget
        seen = memory.seen
        windows = seen.windows if seen.watched else memory.state.windows
        freshness = seen.freshness(decision.signals.freshness)
        memory.budget = judged(before, policy, windows, freshness, decision.time_s)
        kept, missed = memory.budget.recent_kept & 1, memory.budget.recent_missed & 1
        if memory.budget is not before and kept | missed:
            self._recorder.judged(service, kept=bool(kept))

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
        found = findings.of_failed_tick(f"{type(error).__name__}: {words}")
        await self._reporter.report_found(memory, found, generation, self._clock.now_s())

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
    pods = gathered.observation.pods
    ready = all(one.state is PodState.READY for one in pods)
    return ready and len(pods) == acted.replicas and not gathered.observation.rolling


def _tokens(
    before: TokenPromises, service: InferenceService, samples: PodSamples, now_s: float
) -> TokenPromises:
    """Take in what the pods' histograms say of the promises on tokens, where any is made."""
    slo = service.spec.slo
    if slo.time_to_first_token is None and slo.time_per_output_token is None:
        return NOTHING_PROMISED
    readings = samples.readings
    pages = {
        "timeToFirstToken": {pod: one.first_token for pod, one in readings.items()},
        "timePerOutputToken": {pod: one.output_token for pod, one in readings.items()},
    }
    return before.observe(slo, pages, now_s)
