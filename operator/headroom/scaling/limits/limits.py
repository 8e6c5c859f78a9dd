"""The limits: named steps that may change the wanted number, each recording itself.

Upwards: scale-up stabilization, rate, capacity shortage; but none of them goes below what the
utilization ceiling needs. Downwards: every reason to keep what stands, then the rate. Either way:
what a service of higher priority gets instead. Bounds last, always.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from headroom.scaling.state import State
from headroom.scaling.tuning import Element
from headroom.scaling.values import (
    Freshness,
    LimitApplied,
    Observation,
    Policy,
    RateLimit,
    Reason,
    ReplicaCounts,
    Signals,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the rules ask for, before any limit."""

    replicas: int
    by_arrivals: int
    """The part that follows from arrivals alone; queue and feedback excluded."""
    by_ceiling: int
    """N_util: upward limits do not go below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What the limits look at."""

    policy: Policy
    state: State
    observation: Observation
    signals: Signals
    counts: ReplicaCounts
    wanted: Wanted
    known: bool
    """Whether the cost of a request is known: without it no number can be called too many."""
    now_s: float


Limited = tuple[int, tuple[LimitApplied, ...]]


def increase(situation: Situation) -> Limited:
    """Return how far the replicas may rise above `current` now."""
    policy, current = situation.policy, situation.observation.current
    replicas, applied = situation.wanted.replicas, list[LimitApplied]()

    def cut(limit: Reason, most: int) -> None:
        nonlocal replicas
        lowered = max(current, most)
        if lowered < replicas:
            applied.append(LimitApplied(limit=limit, before=replicas, after=lowered))
            replicas = lowered

    if policy.scale_up_stabilization_s > 0:
        lowest = situation.state.wanted_low.value
        throughout = situation.state.coverage.length_s(situation.now_s)
        steady = lowest if throughout >= policy.scale_up_stabilization_s else current
        cut(Reason.SCALE_UP_STABILIZED, max(steady or 0, situation.wanted.by_ceiling))
    if policy.scale_up_rate is not None:
        start = _replicas_at(situation, policy.scale_up_rate.period_s)
        most = start + _step(policy.scale_up_rate, start)
        cut(Reason.RATE_LIMITED, max(most, situation.wanted.by_ceiling))
    cut(Reason.CAPACITY_SHORTAGE, _obtainable(situation))
    return replicas, tuple(applied)


def _obtainable(situation: Situation) -> int:
    """Return the most that may be asked for while some replicas cannot come up.

    Unschedulable: what the arrivals need may still be asked for (a cluster autoscaler answers to
    pending pods), but the queue, which grows for as long as they are missing, must not multiply
    them; nor must it swell the share of a service that has yielded some. More broken than ready:
    the next one would break too.
    """
    counts, current = situation.counts, situation.observation.current
    if counts.broken > counts.ready:
        return current
    if counts.unschedulable > 0 or situation.observation.grant is not None:
        return max(current, situation.wanted.by_arrivals)
    return situation.wanted.replicas


def decrease(situation: Situation) -> Limited:
    """Return how far the replicas may fall now; `current` where anything objects."""
    policy, current = situation.policy, situation.observation.current
    lowest = max(situation.wanted.replicas, policy.min_replicas)

    def keep(limit: Reason) -> Limited:
        return current, (LimitApplied(limit=limit, before=lowest, after=current),)

    if situation.signals.freshness is Freshness.ABSENT:
        return keep(Reason.SIGNALS_ABSENT)
    if situation.signals.freshness is Freshness.STALE:
        return keep(Reason.SIGNALS_STALE)
    if situation.observation.rolling:
        return keep(Reason.ROLLING_OUT)
    if not situation.known:
        return keep(Reason.COST_UNKNOWN)
    held_s = hold_s(policy, situation.state)
    if situation.state.coverage.length_s(situation.now_s) < held_s:
        return keep(Reason.RESTART_HOLD)
    needed = situation.state.needed_high.since(situation.now_s - held_s)
    held = max(lowest, needed if needed is not None else current)
    if policy.law.has(Element.FLAPS):
        longer_s, level = situation.state.flaps.hold(situation.now_s, held_s)
        longer = situation.state.needed_high.since(situation.now_s - longer_s)
        held = max(held, min(level, current, current if longer is None else longer))
    if held >= current:
        margin = situation.wanted.replicas < current <= held and _needed_now(situation) >= current
        return keep(Reason.SCALE_DOWN_MARGIN if margin else Reason.SCALE_DOWN_STABILIZED)
    if policy.scale_down_rate is None:
        return held, ()
    start = _replicas_at(situation, policy.scale_down_rate.period_s)
    slowed = min(current, max(held, start - _step(policy.scale_down_rate, start)))
    if slowed == held:
        return held, ()
    return slowed, (LimitApplied(limit=Reason.RATE_LIMITED, before=held, after=slowed),)


def hold_s(policy: Policy, state: State) -> float:
    """Return for how long nothing may have needed what is removed: no less than a cold start.

    What is removed and needed again is paid for a cold start before it serves; keeping it for as
    long costs no more (ski rental: Karlin et al. 1988; of servers, Lu, Chen and Andrew 2013).
    """
    return max(policy.scale_down_stabilization_s, state.cold_starts.at_least_s)


def granted(situation: Situation, replicas: int) -> Limited:
    """Return what is left of the number where another service has priority: never below the floor.

    It waits for no hold and no signal of this service: the other one has waited.
    """
    policy, grant = situation.policy, situation.observation.grant
    wanted = min(replicas, policy.max_replicas)
    if grant is None or max(grant.replicas, policy.min_replicas) >= wanted:
        return replicas, ()
    left = max(grant.replicas, policy.min_replicas)
    detail = f"{grant.to} gets the last accelerators"
    limit = LimitApplied(limit=Reason.YIELDED_TO_PRIORITY, before=wanted, after=left, detail=detail)
    return left, (limit,)


def _needed_now(situation: Situation) -> int:
    """Return what this tick's entry of the scale-down window holds."""
    entries = situation.state.needed_high.entries
    return entries[-1][1] if entries else 0


def bounds(policy: Policy, replicas: int) -> Limited:
    """Return the number within the user's bounds; they come last and know no exception."""
    if replicas > policy.max_replicas:
        limit = LimitApplied(limit=Reason.MAX_REPLICAS, before=replicas, after=policy.max_replicas)
        return policy.max_replicas, (limit,)
    if replicas < policy.min_replicas:
        limit = LimitApplied(
            limit=Reason.MIN_REPLICAS,
            before=replicas,
            after=policy.min_replicas,
            detail=policy.schedule and f"schedule {policy.schedule} asks for no fewer",
        )
        return policy.min_replicas, (limit,)
    return replicas, ()


def _step(rate: RateLimit, start: int) -> int:
    return max(rate.replicas, math.ceil(start * rate.percent / 100))


def _replicas_at(situation: Situation, ago_s: float) -> int:
    """Return what was asked for so long ago; the oldest known where memory is shorter."""
    replicas = situation.state.changes[0][1] if situation.state.changes else None
    for time_s, value in situation.state.changes:
        if time_s <= situation.now_s - ago_s:
            replicas = value
    return situation.observation.current if replicas is None else replicas
