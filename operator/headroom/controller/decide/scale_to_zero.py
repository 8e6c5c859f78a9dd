"""Idle time and held requests of a service: the inputs of scale to zero. Pure.

The rule itself is `headroom.scaling.post_rules.scale_to_zero`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headroom.api import InferenceService
from headroom.controller.gather.gateways.route_status import RouteStatus
from headroom.scaling import Decision, State
from headroom.scaling.post_rules import ScaleToZeroInputs
from headroom.scaling.values.signals import Freshness, Signal, Signals

LOOK_BACK_S = 4.0
"""Arrivals within it end the idle time: longer than a tick, so that none is missed."""
ACTIVATOR_WINDOW_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleTracker:
    """State between ticks; lost with the process, which restarts the wait."""

    since_s: float | None = None
    """Time of the last request, without a gap in the metrics since; None while requests come."""
    seen_s: float = 0.0
    no_activator_since_s: float | None = None
    arrivals_rps: float | None = None
    """The last arrival rate above 0."""
    arrived: tuple[tuple[float, int], ...] = ()
    """(time, requests that came to activators), of the last seconds, oldest first."""

    def observe(
        self,
        state: State,
        decision: Decision,
        route: RouteStatus,
        now_s: float,
        longest_gap_s: float,
    ) -> IdleTracker:
        """Process a tick."""
        signals = decision.signals
        no_activator_s = None if route.can_activate else (self.no_activator_since_s or now_s)
        rate_rps = signals.arrival_rps.value or self.arrivals_rps
        arrived = tuple(one for one in self.arrived if now_s - ACTIVATOR_WINDOW_S <= one[0] < now_s)
        idle = replace(
            self,
            no_activator_since_s=no_activator_s,
            arrivals_rps=rate_rps,
            arrived=(*arrived, (now_s, route.arrived)),
        )
        known = signals.freshness is Freshness.FRESH and route.can_activate
        # Best-effort requests are no load, and are answered.
        in_flight = signals.in_flight.value or state.classes.best_effort_in_flight > 0.0
        if not known or route.held or in_flight or _arrived(state):
            return replace(idle, since_s=None)
        gap = self.since_s is not None and now_s - self.seen_s > longest_gap_s
        since_s = now_s if self.since_s is None or gap else self.since_s
        return replace(idle, since_s=since_s, seen_s=now_s)

    @property
    def activator_rps(self) -> float | None:
        """Requests a second at the activators while no replica counts them; None until known."""
        (begun_s, before), (now_s, after) = self.arrived[0], self.arrived[-1]
        return max(0, after - before) / (now_s - begun_s) if now_s > begun_s else None

    def misses_per_cold_start(self, service: InferenceService, decision: Decision) -> float | None:
        """Return the requests that miss the SLO each time the service wakes; None if unknown.

        Without a gateway there is no start from zero.
        """
        if service.spec.routing.mode != "Gateway":
            return None
        target_s = service.spec.slo.whole_answer.seconds
        return misses_per_cold_start(decision.cold_start_s, target_s, self.arrivals_rps)


def post_rule_inputs(
    idle: IdleTracker,
    route: RouteStatus,
    *,
    now_s: float,
    rolling: bool,
    min_replicas: int,
    idle_timeout_s: float,
) -> ScaleToZeroInputs | None:
    """Return the inputs of the post-rule; None while minReplicas, as scheduled, is above 0.

    Worked: no request since 100 s, now 460 s, idleTimeout 5m: the last replica goes.
    """
    if min_replicas > 0:
        return None
    since_s, missing_s = idle.since_s, idle.no_activator_since_s
    return ScaleToZeroInputs(
        idle_timeout_s=idle_timeout_s,
        idle_s=None if since_s is None else now_s - since_s,
        rolling=rolling,
        held=route.held,
        no_activator_s=None if missing_s is None else now_s - missing_s,
        at_activator=_at_activator(idle, route),
    )


def misses_per_cold_start(
    cold_start_s: float | None, target_s: float, rate_rps: float | None
) -> float | None:
    """Return how many requests miss the target each time that a service wakes; None if unknown.

    The first, and those that arrive while it waits longer than the target. Worked: a start of 10 s,
    a target of 0.5 s, 2/s: 1 + 9.5 x 2 = 20.
    """
    if cold_start_s is None:
        return None
    late_s = cold_start_s - target_s
    return 0.0 if late_s <= 0 else 1.0 + late_s * (rate_rps or 0.0)


def _arrived(state: State) -> float:
    return state.windows.arrivals([LOOK_BACK_S])[0]


def _at_activator(idle: IdleTracker, route: RouteStatus) -> Signals:
    """Return the arrivals at activators while no replica counts any; absent without activators."""
    rate_rps = idle.activator_rps
    if not route.can_activate or rate_rps is None:
        return Signals()
    return Signals(
        arrival_rps=Signal(freshness=Freshness.FRESH, value=rate_rps, age_s=0.0),
        waiting=Signal(freshness=Freshness.FRESH, value=float(route.held), age_s=0.0),
    )
