"""Write the status and the events of a tick: on change, else as a rare refresh."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from headroom.api import conditions, status_rendering
from headroom.api.conditions import Conditions, ConditionType, is_good
from headroom.api.kind import API_VERSION, KIND
from headroom.api.slo_status import SloStatus
from headroom.api.status import Status
from headroom.controller.act.write_result import WriteResult
from headroom.controller.ports import Cluster, Recorder
from headroom.controller.report import condition_rules, events
from headroom.controller.report.condition_result import ConditionResult, TickResult
from headroom.controller.report.damping import Damping
from headroom.controller.report.error_budget import ErrorBudget
from headroom.controller.report.events import Event
from headroom.controller.report.state import ReportState
from headroom.controller.report.status_throttle import LastWrite, StatusKey, is_due
from headroom.controller.scheduling import tick_period
from headroom.controller.services.service_cache import ServiceCache
from headroom.errors import ClusterError, Conflict, NotFound, NotLeading, Unavailable
from headroom.resources import names
from headroom.scaling.values.decision import Decision

_log = logging.getLogger(__name__)

ANNOUNCED_WITHIN_S = 3.0
"""A status that takes longer to write is written after the replicas. A request may take 6 s, a tick
20 s: the reads, this, and two more writes that hang."""


class Reporter:
    """Writes what was found. `instance` names this process in events."""

    def __init__(
        self, cluster: Cluster, cache: ServiceCache, recorder: Recorder, instance: str
    ) -> None:
        self._cluster = cluster
        self._cache = cache
        self._recorder = recorder
        self._instance = instance

    async def announce(
        self,
        state: ReportState,
        tick: TickResult,
        checkpoint: Callable[[], dict[str, object]],
        now_s: float,
        *,
        services: int,
    ) -> None:
        """Report a decision before its write, as best effort: no scaling waits for a status.

        A status that cannot be built or written fails the report that follows the write. Raises
        Conflict, NotFound and NotLeading: the decision is not to be written.
        """
        try:
            async with asyncio.timeout(ANNOUNCED_WITHIN_S):
                await self.report(
                    state, tick, checkpoint, now_s, services=services, before_write=True
                )
        except (Conflict, NotFound, NotLeading):
            raise
        except Exception as error:  # noqa: BLE001  (the report that follows raises it again)
            _log.debug("%s/%s: scaled before it is said: %s", state.namespace, state.name, error)

    async def report(
        self,
        state: ReportState,
        tick: TickResult,
        checkpoint: Callable[[], dict[str, object]],
        now_s: float,
        *,
        services: int,
        before_write: bool = False,
    ) -> None:
        """Update status after a tick, or before its write, and post events for what changed."""
        if state.damping is None:
            state.damping = Damping.of_stored(state.conditions)
        found, state.damping = state.damping.damped(condition_rules.of_tick(tick), now_s)
        written, kept = tick.written, frozenset[ConditionType]()
        if before_write:
            generation = tick.service.generation
            found, kept = condition_rules.before_write(found, state.conditions, generation)
            written = state.written or written
        self._recorder.troubled(state.namespace, state.name, _troubles(found))
        key = _key_of(tick, written, found)
        last, phase = _last(state), tick_period.jitter_phase(state.uid)
        if not is_due(key, last, now_s=now_s, services=services, phase=phase):
            return
        before = state.conditions
        new_ones = (one for one in found if one.kind not in kept)
        after = _upserted(before, new_ones, tick.service.generation, now_s)
        await self._write(state, _built(state, tick, after, checkpoint()), now_s)
        state.key, state.written = key, written
        await self._post_events(state, _news(state, tick, before, after), now_s)

    async def report_conditions(
        self, state: ReportState, found: Sequence[ConditionResult], generation: int, now_s: float
    ) -> None:
        """Write conditions alone, if there was no decision; everything else in status is kept.

        Writes nothing where status has them already.
        """
        self._recorder.troubled(state.namespace, state.name, _troubles(found))
        before = state.conditions
        after = _upserted(before, found, generation, now_s)
        if after == before and state.status.get("observedGeneration") == generation:
            return
        new = state.status | {
            "observedGeneration": generation,
            "conditions": [condition.manifest() for condition in after],
        }
        try:
            await self._write(state, new, now_s)
        except Conflict:  # nothing was decided from the older object
            await self._write(state, new, now_s)
        state.key = StatusKey(urgent=(generation, *found))
        await self._post_events(state, events.of_conditions(before, after), now_s)

    async def _write(self, state: ReportState, new: dict[str, Any], now_s: float) -> None:
        """Write for the object as it was last seen, and for this UID only.

        An object that was deleted and recreated under the name is another. Where it was changed
        since, the cache learns how, whatever the watch says, before the Conflict is passed on.
        """
        known = self._cache.get(state.uid)
        if known is None:
            raise NotFound(f"{KIND} {state.namespace}/{state.name} is gone")
        metadata = {
            "name": state.name,
            "namespace": state.namespace,
            "uid": state.uid,
            "resourceVersion": known["metadata"]["resourceVersion"],
        }
        body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "status": new}
        try:
            stored = await self._cluster.apply_status(body, field_manager=names.FIELD_MANAGER)
        except Conflict:
            with suppress(Unavailable):  # it is a Conflict all the same
                live = await self._cluster.get(API_VERSION, KIND, state.namespace, state.name)
                self._cache.saw(live)
            raise
        self._cache.saw(stored)
        state.status = self._cache.kept(stored).get("status") or new  # the only copy of it
        state.written_s = now_s

    async def _post_events(self, state: ReportState, posted: Iterable[Event], now_s: float) -> None:
        """Post events as best effort: nothing depends on them."""
        service = f"{state.namespace}/{state.name}"
        regarding = {"name": state.name, "namespace": state.namespace, "uid": state.uid}
        for event in posted:
            last_s = state.events_s.get(event.reason)
            if (
                not event.always
                and last_s is not None
                and 0.0 <= now_s - last_s < events.REPEATED_AFTER_S
            ):
                continue
            state.events_s[event.reason] = now_s
            level = logging.WARNING if event.warning else logging.INFO
            _log.log(level, "%s: %s: %s", service, event.reason, event.note)
            body = events.manifest(event, regarding, now_s=now_s, instance=self._instance)
            try:
                await self._cluster.create(body, field_manager=names.FIELD_MANAGER)
            except ClusterError as error:
                _log.warning("%s: event %s was not posted: %s", service, event.reason, error)


def _built(
    state: ReportState, tick: TickResult, found: Conditions, checkpoint: dict[str, object]
) -> dict[str, Any]:
    """Return the status after a tick."""
    gateway = tick.gateway
    return status_rendering.build(
        generation=tick.service.generation,
        current=tick.written.replicas,
        selector=tick.gathered.selector,
        conditions=found,
        counts=tick.decision.counts,
        decision=tick.decision,
        gateway=(
            status_rendering.gateway_status(gateway.signals, gateway.missed_rps)
            if gateway.watched
            else None
        ),
        tokens={one.name: one.value_s for one in tick.tokens if not one.class_name},
        classes=tick.classes,
        generated=tick.generated,
        slo=_slo(state.budget, tick.service.spec.slo.objective, tick.decision),
        estimated_misses_per_cold_start=tick.misses_per_cold_start,
        checkpoint=checkpoint,
    )


def _news(
    state: ReportState, tick: TickResult, before: Conditions, after: Conditions
) -> list[Event]:
    """Return the events of a tick whose status is written, and note them."""
    written, found = tick.written, list[Event]()
    if written.created:
        found.append(events.of_creation(written.replicas))
    if written.news.adopted:
        found.append(events.of_adoption(written.replicas))
    if written.news.changed:
        found.append(events.of_rollout(written.news.changed, written.news.undone_of))
    if written.evicted:
        found.append(events.of_replacement(written.evicted, tick.decision))
    if written.scaled:
        asked = tick.service.spec.replicas
        found.append(events.of_scaling(tick.decision, written.replicas, asked))
    if tick.accelerators and tick.accelerators != state.accelerators:
        found.append(events.of_accelerators(tick.accelerators))
    if tick.preemption and tick.preemption != state.preemption:
        found.append(events.of_preemption(tick.preemption))
    state.accelerators, state.preemption = tick.accelerators, tick.preemption
    return [*found, *events.of_conditions(before, after)]


def _troubles(found: Iterable[ConditionResult]) -> set[str]:
    return {one.reason.value for one in found if not is_good(one.kind, one.status)}


def _slo(budget: ErrorBudget, objective: float, decision: Decision) -> SloStatus:
    attainment, burn_rate = budget.attainment, budget.burn_rate(objective)
    return SloStatus(
        attainment=None if attainment is None else round(attainment, 5),
        windows_met=budget.kept,
        windows_missed=budget.missed,
        error_budget_remaining=round(budget.remaining(objective), 3),
        burn_rate=None if burn_rate is None else round(burn_rate, 2),
        late_share=None if decision.late_share is None else round(decision.late_share, 4),
        margin=round(decision.margin, 2),
    )


def _upserted(
    before: Conditions, found: Iterable[ConditionResult], generation: int, now_s: float
) -> Conditions:
    return conditions.upsert_all(before, (one.condition(generation) for one in found), now_s)


def _last(state: ReportState) -> LastWrite | None:
    """Return the last status, written by this process or read; None before the first decision."""
    key = state.key
    if key is None:
        before = Status.read(state.status)
        if before.decision is not None:
            asked, stood = before.decision.replicas, before.decision.current
            acted = WriteResult(replicas=before.replicas)
            key = StatusKey(urgent=(before.observed_generation, acted, asked, stood), other=None)
    if key is None:
        return None
    return LastWrite(key=key, written_s=state.written_s, known_s=state.known_s)


def _key_of(tick: TickResult, written: WriteResult, found: Iterable[ConditionResult]) -> StatusKey:
    """Return what decides when status is written.

    Messages and other measurements change at every tick and are written with the next refresh.
    """
    decision = tick.decision
    return StatusKey(
        urgent=(tick.service.generation, written, decision.replicas, decision.current),
        other=(
            (tick.preemption, tick.accelerators),
            (decision.direction, decision.reason),
            decision.counts,
            {one.waits_for.reason for one in tick.gathered.pods if one.waits_for is not None},
            tuple((one.kind, one.status, one.reason) for one in found),
        ),
        figures=(
            decision.signals.latency_s.value,
            decision.signals.arrival_rps.value,
            decision.utilization,
        ),
    )
