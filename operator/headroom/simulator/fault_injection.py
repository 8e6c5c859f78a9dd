"""Lets the faults of a scenario begin and end in one service of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from headroom.scaling.values.observation import PodState
from headroom.simulator import observing
from headroom.simulator.autoscaler import Autoscaler, DirectScraper
from headroom.simulator.event_queue import EventQueue, Priority
from headroom.simulator.fleet import Fleet
from headroom.simulator.gpu_pool import Pool
from headroom.simulator.metrics import Metrics
from headroom.simulator.scenario import Fault, FaultKind


@dataclass(slots=True, kw_only=True)
class FaultInjection:
    """Targets of faults; `seed` chooses the victims."""

    events: EventQueue
    fleet: Fleet
    pool: Pool
    metrics: Metrics
    autoscaler: Autoscaler
    seed: int
    silences: list[Fault] = field(default_factory=list)
    """Faults that keep scrapes from being answered now."""

    def enter(self, faults: Iterable[Fault], service: str) -> None:
        """Schedule those that concern the service."""
        for fault in faults:
            if fault.service in (None, service):
                self.events.at(fault.start_s, Priority.FAULTS, self._beginning(fault))

    def _beginning(self, fault: Fault) -> Callable[[float], None]:
        """Return the action that starts a fault and schedules its end."""
        fleet, pool = self.fleet, self.pool

        def begin(now_s: float) -> None:
            ending: Callable[[float], None] | None = None
            ready = fleet.in_state(PodState.READY)
            victims = observing.chosen(ready, fault, self.seed) if ready else []
            match fault.kind:
                case FaultKind.SCRAPE_LOSS:
                    self.silences.append(fault)
                    ending = lambda _: self.silences.remove(fault)  # noqa: E731
                case FaultKind.METRICS_RESTART:
                    self.metrics.restart()
                    if isinstance(self.autoscaler, DirectScraper):
                        self.autoscaler.restart()
                case FaultKind.POD_KILL:
                    fleet.kill(victims, now_s)
                case FaultKind.NODE_LOSS:
                    count = len(victims)
                    pool.lost += count
                    fleet.kill(victims, now_s)
                    ending = lambda end_s: pool.restore(count, end_s)  # noqa: E731
                case FaultKind.SLOW_PODS:
                    fleet.slow(victims, fault.factor)
                    ending = lambda _: fleet.slow(victims, 1.0)  # noqa: E731
                case FaultKind.COSTLY_REQUESTS:
                    fleet.plant.make_costly(fault.factor)
                    ending = lambda _: fleet.plant.make_costly(1 / fault.factor)  # noqa: E731
                case FaultKind.SLOW_STARTS:
                    fleet.slow_starts(fault.factor)
                    ending = lambda _: fleet.slow_starts(1 / fault.factor)  # noqa: E731
            if ending is not None and math.isfinite(fault.end_s):
                self.events.at(fault.end_s, Priority.FAULTS, ending)

        return begin
