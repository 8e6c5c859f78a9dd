"""Posts the events of a tick, and logs them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from headroom.api.service_status.conditions import Conditions
from headroom.controller.ports import Cluster
from headroom.controller.report import events
from headroom.controller.report.conditions.condition_result import TickResult
from headroom.controller.report.events import Event
from headroom.controller.report.state import ReportState
from headroom.errors import ClusterError
from headroom.resources.names import FIELD_MANAGER

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EventPoster:
    """Posts to the cluster. `instance` names this process in events."""

    cluster: Cluster
    instance: str

    async def post(self, state: ReportState, posted: Iterable[Event], now_s: float) -> None:
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
            body = events.manifest(event, regarding, now_s=now_s, instance=self.instance)
            try:
                await self.cluster.create(body, field_manager=FIELD_MANAGER)
            except ClusterError as error:
                _log.warning("%s: event %s was not posted: %s", service, event.reason, error)


def of_tick(
    state: ReportState, tick: TickResult, before: Conditions, after: Conditions
) -> list[Event]:
    """Return the events of a tick whose status was written, and remember them."""
    written, found = tick.written, list[Event]()
    if written.created:
        found.append(events.of_creation(written.replicas))
    if written.changes.adopted:
        found.append(events.of_adoption(written.replicas))
    if written.changes.changed:
        found.append(events.of_rollout(written.changes.changed, written.changes.undone_of))
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
