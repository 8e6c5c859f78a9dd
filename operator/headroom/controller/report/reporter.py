"""Status and events of a tick: written once, whatever happened.

On change, else as a rare heartbeat.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from headroom.api import conditions, status
from headroom.api.conditions import Conditions
from headroom.api.kind import API_VERSION, KIND
from headroom.api.status import SloStatus, Status
from headroom.controller.act.act_tick import Acted
from headroom.controller.ports import Cluster
from headroom.controller.report import condition_rules, events
from headroom.controller.report.condition_result import Found, Tick
from headroom.controller.report.error_budget import ErrorBudget
from headroom.controller.report.events import Happening
from headroom.controller.report.status_throttle import Last, Said, is_due
from headroom.controller.scheduling import tick_period
from headroom.controller.service_context import Memory
from headroom.controller.services.service_cache import ServiceCache
from headroom.errors import ClusterError, Conflict, NotFound
from headroom.resources import names

_log = logging.getLogger(__name__)


class Reporter:
    """Writes what was found. `instance` names this process in events."""

    def __init__(self, cluster: Cluster, cache: ServiceCache, instance: str) -> None:
        self._cluster = cluster
        self._cache = cache
        self._instance = instance

    async def report(self, memory: Memory, tick: Tick, now_s: float, *, services: int) -> None:
        """Bring status up to date with a tick, and tell what changed."""
        found = condition_rules.of_tick(tick)
        said = _said_by(tick, found)
        last, phase = _last(memory), tick_period.phase_of(memory.uid)
        if not is_due(said, last, now_s=now_s, services=services, phase=phase):
            return
        before = memory.conditions
        after = _upserted(before, found, tick.service.generation, now_s)
        new = status.build(
            generation=tick.service.generation,
            current=tick.acted.replicas,
            selector=tick.gathered.selector,
            conditions=after,
            counts=tick.decision.counts,
            decision=tick.decision,
            gateway=(
                status.gateway_status(tick.seen.signals, tick.seen.missed_rps)
                if tick.seen.watched
                else None
            ),
            tokens={one.name: one.value_s for one in tick.tokens},
            slo=_slo(memory.budget, tick.service.spec.slo.objective),
            estimated_misses_per_cold_start=tick.misses_per_cold_start,
            checkpoint=memory.learnt.state.to_checkpoint()
            | {"errorBudget": memory.budget.to_checkpoint()}
            | memory.learnt.tokens.to_checkpoint(),
        )
        await self._write(memory, new, now_s)
        memory.said = said
        happenings = list(events.of_conditions(before, after))
        if tick.claim and tick.claim != memory.claim:
            happenings.insert(0, events.of_claim(tick.claim))
        memory.claim = tick.claim
        if tick.acted.scaled:
            happenings.insert(
                0, events.of_scaling(tick.decision, tick.acted.replicas, tick.service.spec.replicas)
            )
        if tick.acted.created:
            happenings.insert(0, events.of_creation(tick.acted.replicas))
        await self._tell(memory, happenings, now_s)

    async def report_found(
        self, memory: Memory, found: Sequence[Found], generation: int, now_s: float
    ) -> None:
        """Write conditions alone, where there was no tick; everything else in status stays."""
        said = Said(moved=(generation, *found))
        if said == memory.said:
            return
        before = memory.conditions
        after = _upserted(before, found, generation, now_s)
        new = memory.status | {
            "observedGeneration": generation,
            "conditions": [condition.manifest() for condition in after],
        }
        try:
            await self._write(memory, new, now_s)
        except Conflict:  # nothing was decided from the older object
            await self._write(memory, new, now_s)
        memory.said = said
        await self._tell(memory, events.of_conditions(before, after), now_s)

    async def _write(self, memory: Memory, new: dict[str, Any], now_s: float) -> None:
        """Write for the object as it was last seen, and for this UID only.

        An object that was deleted and made anew under the name is another. Where it was changed
        since, the cache learns how, whatever the watch says, before the Conflict is passed on.
        """
        known = self._cache.get(memory.uid)
        if known is None:
            raise NotFound(f"{KIND} {memory.namespace}/{memory.name} is gone")
        metadata = {
            "name": memory.name,
            "namespace": memory.namespace,
            "uid": memory.uid,
            "resourceVersion": known["metadata"]["resourceVersion"],
        }
        body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "status": new}
        try:
            stored = await self._cluster.apply_status(body, field_manager=names.FIELD_MANAGER)
        except Conflict:
            self._cache.saw(
                await self._cluster.get(API_VERSION, KIND, memory.namespace, memory.name)
            )
            raise
        self._cache.saw(stored)
        memory.status = self._cache.kept(stored).get("status") or new  # the only copy of it
        memory.written_s = now_s

    async def _tell(self, memory: Memory, happenings: Iterable[Happening], now_s: float) -> None:
        """Post events as best effort: they are for people, and nothing depends on them."""
        service = f"{memory.namespace}/{memory.name}"
        regarding = {"name": memory.name, "namespace": memory.namespace, "uid": memory.uid}
        for happening in happenings:
            last_s = memory.events_s.get(happening.reason)
            if (
                not happening.always
                and last_s is not None
                and 0.0 <= now_s - last_s < events.REPEATED_AFTER_S
            ):
                continue
            memory.events_s[happening.reason] = now_s
            level = logging.WARNING if happening.warning else logging.INFO
            _log.log(level, "%s: %s: %s", service, happening.reason, happening.note)
            event = events.manifest(happening, regarding, now_s=now_s, instance=self._instance)
            try:
                await self._cluster.create(event, field_manager=names.FIELD_MANAGER)
            except ClusterError as error:
                _log.warning("%s: event %s was not posted: %s", service, happening.reason, error)


def _slo(budget: ErrorBudget, objective: float) -> SloStatus:
    attainment, burn_rate = budget.attainment, budget.burn_rate(objective)
    return SloStatus(
        attainment=None if attainment is None else round(attainment, 5),
        windows_met=budget.kept,
        windows_missed=budget.missed,
        error_budget_remaining=round(budget.remaining(objective), 3),
        burn_rate=None if burn_rate is None else round(burn_rate, 2),
    )


def _upserted(
    before: Conditions, found: Iterable[Found], generation: int, now_s: float
) -> Conditions:
    return conditions.upsert_all(before, (one.condition(generation) for one in found), now_s)


def _last(memory: Memory) -> Last | None:
    """What status says, as this process wrote it or found it; None where nothing was decided."""
    said = memory.said
    if said is None:
        before = Status.read(memory.status)
        if before.decision is not None:
            asked, stood = before.decision.replicas, before.decision.current
            acted = Acted(replicas=before.replicas)
            said = Said(moved=(before.observed_generation, acted, asked, stood), rest=None)
    if said is None:
        return None
    return Last(said=said, written_s=memory.written_s, known_s=memory.known_s)


def _said_by(tick: Tick, found: Iterable[Found]) -> Said:
    """What somebody acts on.

    Measurements and messages change at every tick and come with the heartbeat.
    """
    decision = tick.decision
    return Said(
        moved=(tick.service.generation, tick.acted, decision.replicas, decision.current),
        rest=(
            tick.claim,
            (decision.direction, decision.reason),
            decision.counts,
            {one.waits_for.reason for one in tick.gathered.pods if one.waits_for is not None},
            tuple((one.kind, one.status, one.reason) for one in found),
        ),
    )
