"""Whether the last replica may go, and when one has to come back. Pure; beside decide(), after it.

decide() knows services of at least one replica. Where minReplicas is 0, its 1 becomes 0 once no
request came for `idleTimeout`, all of it seen with fresh signals, nothing is held and an activator
would hold what comes next; and 0 stays 0 until somebody is held, or nobody would hold him.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headroom.api.status import duration_text
from headroom.controller.gather.route_status import Standing
from headroom.scaling import Decision, State
from headroom.scaling.values import Direction, Freshness, Observation, Reason, Signal, Signals

LOOK_BACK_S = 4.0
"""Arrivals within it end the quiet: longer than a tick, so that none is missed."""
DOOR_WINDOW_S = 30.0
UNWAKEABLE_AFTER_S = 30.0
"""Activators that are away for so long, as in a rollout, cost no replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """What is remembered from tick to tick; lost with the process, which begins the wait anew."""

    since_s: float | None = None
    """Since when nobody has asked, without a gap in what is known; None while somebody does."""
    seen_s: float = 0.0
    unwakeable_since_s: float | None = None
    arrivals_rps: float | None = None
    """The last rate that was more than nothing."""
    door: tuple[tuple[float, int], ...] = ()
    """(time, requests that came to activators), of the last seconds, oldest first."""

    def observe(
        self,
        state: State,
        decision: Decision,
        standing: Standing,
        now_s: float,
        longest_gap_s: float,
    ) -> Quiet:
        """Take in a tick."""
        signals = decision.signals
        unwakeable_s = None if standing.wakeable else (self.unwakeable_since_s or now_s)
        rate_rps = signals.arrival_rps.value or self.arrivals_rps
        door = tuple(one for one in self.door if now_s - DOOR_WINDOW_S <= one[0] < now_s)
        quiet = replace(
            self,
            unwakeable_since_s=unwakeable_s,
            arrivals_rps=rate_rps,
            door=(*door, (now_s, standing.arrived)),
        )
        known = signals.freshness is Freshness.FRESH and standing.wakeable
        if not known or standing.held or signals.in_flight.value or _arrived(state):
            return replace(quiet, since_s=None)
        gap = self.since_s is not None and now_s - self.seen_s > longest_gap_s
        since_s = now_s if self.since_s is None or gap else self.since_s
        return replace(quiet, since_s=since_s, seen_s=now_s)

    @property
    def door_rps(self) -> float | None:
        """Requests a second at the door while no replica counts them; None until watched."""
        (begun_s, before), (now_s, after) = self.door[0], self.door[-1]
        return max(0, after - before) / (now_s - begun_s) if now_s > begun_s else None


def settled(
    decision: Decision,
    observation: Observation,
    quiet: Quiet,
    standing: Standing,
    *,
    least: int,
    idle_s: float,
) -> Decision:
    """Give the decision where no replica at all may be the answer; else as it is.

    `least` is minReplicas, or what a schedule makes of them now.
    """
    now_s = observation.now_s
    if least > 0:
        return decision
    if observation.current == 0:
        decision = replace(decision, signals=_at_the_door(quiet, standing))
        if standing.held:
            words = f"woken: {standing.held} requests are held for the first replica"
            return replace(decision, reason=Reason.QUEUE_DEPTH, message=words)
        away_s = quiet.unwakeable_since_s
        if away_s is not None and now_s - away_s >= UNWAKEABLE_AFTER_S:
            words = "one replica, since no activator would hold a request: see RoutingReady"
            return replace(decision, message=words)
        return _none(decision, "no replica: the first request wakes one")
    idle = quiet.since_s is not None and now_s - quiet.since_s >= idle_s
    if observation.current > 1 or decision.replicas > 1 or observation.rolling or not idle:
        return decision
    return _none(
        decision, f"no request for {duration_text(idle_s)} (scaling.scaleToZero.idleTimeout)"
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


def _at_the_door(quiet: Quiet, standing: Standing) -> Signals:
    """Give what activators see where no replica sees anything; absent where there is none."""
    rate_rps = quiet.door_rps
    if not standing.wakeable or rate_rps is None:
        return Signals()
    return Signals(
        arrival_rps=Signal(freshness=Freshness.FRESH, value=rate_rps, age_s=0.0),
        waiting=Signal(freshness=Freshness.FRESH, value=float(standing.held), age_s=0.0),
    )


def _none(decision: Decision, words: str) -> Decision:
    down = Direction.NONE if decision.current == 0 else Direction.DOWN
    return replace(
        decision,
        replicas=0,
        direction=down,
        reason=Reason.MIN_REPLICAS,
        message=words,
        limits=(),
        floor_replicas=0,
        floor_rps=None,
    )
