"""Reports a tick in status and events: on change, else as a rare refresh."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from headroom.api.service_status import conditions
from headroom.api.service_status.conditions import Conditions, ConditionType, is_good
from headroom.api.service_status.status import Status
from headroom.controller.ports import Cluster, Recorder
from headroom.controller.report import events
from headroom.controller.report.conditions import condition_rules
from headroom.controller.report.conditions.condition_result import ConditionResult, TickResult
from headroom.controller.report.conditions.damping import Damping
from headroom.controller.report.event_poster import EventPoster, of_tick
from headroom.controller.report.state import ReportState
from headroom.controller.report.status_throttle import StatusKey, is_due
from headroom.controller.report.status_writer import StatusWriter
from headroom.controller.report.tick_status import key_after, last_write, status_after
from headroom.controller.scheduling import tick_period
from headroom.controller.services.service_cache import ServiceCache
from headroom.errors import Conflict, NotFound, NotLeading

_log = logging.getLogger(__name__)

ANNOUNCED_WITHIN_S = 3.0
"""A status that takes longer to write is written after the replicas. A request may take 6 s, a tick
20 s: the reads, this, and two more writes that hang."""


class Reporter:
    """Writes the results of ticks. `instance` names this process in events."""

    def __init__(
        self, cluster: Cluster, cache: ServiceCache, recorder: Recorder, instance: str
    ) -> None:
        self._writer = StatusWriter(cluster, cache)
        self._poster = EventPoster(cluster, instance)
        self._recorder = recorder

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
            _log.debug(
                "%s/%s: replicas are written before the status, which failed: %s",
                state.namespace,
                state.name,
                error,
            )

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
        """Update status after a tick, or before its write, and post events for changes."""
        if state.damping is None:
            state.damping = Damping.of_stored(state.conditions)
        found, state.damping = state.damping.damped(condition_rules.of_tick(tick), now_s)
        written, kept = tick.written, frozenset[ConditionType]()
        if before_write:
            generation = tick.service.generation
            found, kept = condition_rules.before_write(found, state.conditions, generation)
            written = state.written or written
        self._recorder.show_unhealthy(state.namespace, state.name, _unhealthy_reasons(found))
        key = key_after(tick, written, found)
        last, phase = last_write(state), tick_period.jitter_phase(state.uid)
        if not is_due(key, last, now_s=now_s, services=services, phase=phase):
            return
        before = state.conditions
        new_ones = (one for one in found if one.kind not in kept)
        after = _upserted(before, new_ones, tick.service.generation, now_s)
        new = status_after(state.budget, tick, after, checkpoint())
        await self._writer.write(state, new, now_s)
        state.key, state.written = key, written
        await self._poster.post(state, of_tick(state, tick, before, after), now_s)

    async def report_conditions(
        self, state: ReportState, found: Sequence[ConditionResult], generation: int, now_s: float
    ) -> None:
        """Write conditions alone, if there was no decision; everything else in status is kept.

        Writes nothing where status has them already.
        """
        self._recorder.show_unhealthy(state.namespace, state.name, _unhealthy_reasons(found))
        before = state.conditions
        after = _upserted(before, found, generation, now_s)
        if after == before and state.status.get("observedGeneration") == generation:
            return
        decision = Status.read(state.status).decision
        reason = conditions.reason_of(after, decision.reason if decision else None)
        new = state.status | {
            "observedGeneration": generation,
            "conditions": [condition.manifest() for condition in after],
            **({} if reason is None else {"reason": reason}),
        }
        try:
            await self._writer.write(state, new, now_s)
        except Conflict:  # nothing was decided from the older object
            await self._writer.write(state, new, now_s)
        state.key = StatusKey(urgent=(generation, *found))
        await self._poster.post(state, events.of_conditions(before, after), now_s)


def _unhealthy_reasons(found: Iterable[ConditionResult]) -> set[str]:
    return {one.reason.value for one in found if not is_good(one.kind, one.status)}


def _upserted(
    before: Conditions, found: Iterable[ConditionResult], generation: int, now_s: float
) -> Conditions:
    return conditions.upsert_all(before, (one.condition(generation) for one in found), now_s)
