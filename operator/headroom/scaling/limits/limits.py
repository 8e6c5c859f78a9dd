"""The limits: steps that may change the desired number of replicas, each recorded with its reason.

Upwards: scale-up stabilization, rate, capacity shortage; none of them goes below what the
utilization ceiling needs, unless more replicas would only wait for what they share. Downwards:
every reason to keep replicas, then the rate. In both directions: the
allocation of a pool that is too small. Bounds always come last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from headroom.scaling.limits.cold_start import ColdStarts
from headroom.scaling.limits.flaps import Flaps
from headroom.scaling.limits.stabilization import Coverage, SlidingExtreme
from headroom.scaling.tuning import Component
from headroom.scaling.values.decision import LimitApplied, Reason, ReplicaCounts
from headroom.scaling.values.observation import Observation
from headroom.scaling.values.policy import Policy, RateLimit
from headroom.scaling.values.signals import Freshness, Signals


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredReplicas:
    """What the rules need, before any limit."""

    replicas: int
    by_arrivals: int
    """The part that follows from arrivals alone, without queues."""
    by_ceiling: int
    """N_util: upward limits do not go below it."""


class LimitHistory(Protocol):
    """The part of the state that limits depend on."""

    @property
    def desired_low(self) -> SlidingExtreme:
        """The fewest desired replicas within the scale-up window."""

    @property
    def needed_high(self) -> SlidingExtreme:
        """The most needed replicas within the scale-down window."""

    @property
    def arrivals_high(self) -> SlidingExtreme:
        """The most replicas that arrivals needed within the longest hold."""

    @property
    def coverage(self) -> Coverage:
        """Since when the inputs of a removal are known without a gap."""

    @property
    def flaps(self) -> Flaps:
        """The flaps of the last hour."""

    @property
    def cold_starts(self) -> ColdStarts:
        """The measured cold starts."""

    @property
    def changes(self) -> tuple[tuple[float, int], ...]:
        """(time, requested replicas) at each change, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitInput:
    """Everything that the limits depend on."""

    policy: Policy
    state: LimitHistory
    observation: Observation
    signals: Signals
    counts: ReplicaCounts
    desired: DesiredReplicas
    known: bool
    """Whether the cost of a request is known: without it no number is known to be too high."""
    now_s: float
    kept_because: str = ""
    """Why a removal leaves more than desired, if not by the usual margin."""
    pinned: bool = False
    """Whether connections stay with their replicas: one that is added again would stay idle."""
    no_effect: bool = False
    """Whether earlier growth has not helped."""
    most_useful: int | None = None
    """More replicas than this would only wait: not even the ceiling asks for them."""
    contradicted: bool = False
    """Whether the other replicas contradict the samples of one."""


PINNED_HOLD_S, REBALANCED_HOLD_S = 900.0, 300.0
"""While connections stay with their replicas: one that is removed and added again stays idle until
they are spread. Until then shares differ, and one that hides requests is no contradiction."""

UNMEASURED_START = 3.0
"""Factor on the configured hold until a cold start was measured. Worked: 90 s become 270 s, about
what the HPA waits, and what a large model takes to load."""

Limited = tuple[int, tuple[LimitApplied, ...]]


def limit_increase(limit_input: LimitInput) -> Limited:
    """Return how far the replicas may rise above `current` now."""
    policy, current = limit_input.policy, limit_input.observation.current
    replicas, applied = limit_input.desired.replicas, list[LimitApplied]()

    def cut(limit: Reason, most: int) -> None:
        nonlocal replicas
        lowered = max(current, most)
        if lowered < replicas:
            applied.append(LimitApplied(limit=limit, before=replicas, after=lowered))
            replicas = lowered

    if policy.scale_up_stabilization_s > 0:
        lowest = limit_input.state.desired_low.value
        throughout = limit_input.state.coverage.length_s(limit_input.now_s)
        stable = lowest if throughout >= policy.scale_up_stabilization_s else current
        cut(Reason.SCALE_UP_STABILIZED, max(stable or 0, limit_input.desired.by_ceiling))
    if policy.scale_up_rate is not None:
        start = _replicas_at(limit_input, policy.scale_up_rate.period_s)
        most = start + _step(policy.scale_up_rate, start)
        cut(Reason.RATE_LIMITED, max(most, limit_input.desired.by_ceiling))
    if limit_input.no_effect:
        cut(Reason.NO_EFFECT, limit_input.desired.by_ceiling)
    if limit_input.most_useful is not None:
        cut(Reason.NO_EFFECT, limit_input.most_useful)
    cut(Reason.CAPACITY_SHORTAGE, _obtainable(limit_input))
    return replicas, tuple(applied)


def _obtainable(limit_input: LimitInput) -> int:
    """Return the most replicas to request while some cannot start.

    Unschedulable: what the arrivals need may still be requested (a cluster autoscaler reacts to
    pending pods), but the queue, which grows while they are missing, must not add more, nor
    increase the share of a service that yielded replicas. More broken than ready: the next one
    would break too.
    """
    counts, current = limit_input.counts, limit_input.observation.current
    if counts.broken > counts.ready:
        return current
    if counts.unschedulable > 0 or limit_input.observation.allocation is not None:
        return max(current, limit_input.desired.by_arrivals)
    return limit_input.desired.replicas


def limit_decrease(limit_input: LimitInput) -> Limited:
    """Return how far the replicas may fall now; `current` if any limit objects.

    Missing or stale metrics, a rollout, an incomplete history and a hold keep all replicas.
    """
    policy, current = limit_input.policy, limit_input.observation.current
    lowest = max(limit_input.desired.replicas, policy.min_replicas)

    def keep(limit: Reason) -> Limited:
        return current, (LimitApplied(limit=limit, before=lowest, after=current),)

    if limit_input.signals.freshness is Freshness.MISSING:
        return keep(Reason.METRICS_MISSING)
    if limit_input.contradicted:
        return keep(Reason.REPLICA_CONTRADICTS)
    if limit_input.signals.freshness is Freshness.STALE:
        return keep(Reason.METRICS_STALE)
    if limit_input.observation.rolling:
        return keep(Reason.ROLLING_OUT)
    if not limit_input.known:
        return keep(Reason.COST_UNKNOWN)
    held_s = hold_s(policy, limit_input.state)
    if limit_input.pinned:
        held_s = max(held_s, REBALANCED_HOLD_S if policy.rebalances else PINNED_HOLD_S)
    if limit_input.state.coverage.length_s(limit_input.now_s) < held_s:
        return keep(Reason.INSUFFICIENT_HISTORY)
    needed = limit_input.state.needed_high.since(limit_input.now_s - held_s)
    held = max(lowest, needed if needed is not None else current)
    if policy.tuning.has(Component.FLAPS):
        for longer_s, level in limit_input.state.flaps.holds(limit_input.now_s, held_s):
            longer = limit_input.state.arrivals_high.since(limit_input.now_s - longer_s)
            held = max(held, min(level, current, current if longer is None else longer))
        held = max(held, limit_input.state.flaps.kept(limit_input.now_s))
    held = min(held, current)
    applied: tuple[LimitApplied, ...] = ()
    if held > lowest:
        margin = limit_input.desired.replicas < held <= _needed_now(limit_input)
        reason = Reason.SCALE_DOWN_MARGIN if margin else Reason.SCALE_DOWN_STABILIZED
        why = limit_input.kept_because
        applied = (LimitApplied(limit=reason, before=lowest, after=held, detail=why),)
    if policy.scale_down_rate is None or held == current:
        return held, applied
    start = _replicas_at(limit_input, policy.scale_down_rate.period_s)
    slowed = min(current, max(held, start - _step(policy.scale_down_rate, start)))
    if slowed != held:
        applied += (LimitApplied(limit=Reason.RATE_LIMITED, before=held, after=slowed),)
    return slowed, applied


def hold_s(policy: Policy, state: LimitHistory) -> float:
    """Return how long no rule may have needed a replica before its removal: at least a cold start.

    A replica that is removed and needed again costs a cold start before it serves; keeping it for
    as long costs no more (ski rental: Karlin et al. 1988; for servers, Lu, Chen and Andrew 2013).
    A start that was never measured is not a short one: until then the configured time is tripled.
    Nor is one that is not over: what it was begun for stays, or it would never end. A rate that
    is known only after a stretched window says nothing sooner.
    """
    configured_s, starts = policy.scale_down_stabilization_s, state.cold_starts
    if starts.p90_s is None:
        configured_s *= UNMEASURED_START
    known_s = policy.stable_window_s if policy.pace > 1.0 else 0.0
    return max(configured_s, known_s, starts.at_least_s, starts.underway_s)


def apply_allocation(limit_input: LimitInput, replicas: int) -> Limited:
    """Return what remains of the number if another service has priority: never below the floor.

    It waits for no hold and no signal of this service: the other service has already waited.
    """
    policy, allocation = limit_input.policy, limit_input.observation.allocation
    desired = min(replicas, policy.max_replicas)
    if allocation is None or max(allocation.replicas, policy.min_replicas) >= desired:
        return replicas, ()
    left = max(allocation.replicas, policy.min_replicas)
    detail = f"{allocation.preempted_by} gets the last accelerators"
    limit = LimitApplied(
        limit=Reason.YIELDED_TO_PRIORITY, before=desired, after=left, detail=detail
    )
    return left, (limit,)


def _needed_now(limit_input: LimitInput) -> int:
    """Return this tick's entry in the scale-down window."""
    entries = limit_input.state.needed_high.entries
    return entries[-1][1] if entries else 0


def apply_bounds(policy: Policy, replicas: int) -> Limited:
    """Return the number within minReplicas and maxReplicas; without exception."""
    if replicas > policy.max_replicas:
        limit = LimitApplied(limit=Reason.MAX_REPLICAS, before=replicas, after=policy.max_replicas)
        return policy.max_replicas, (limit,)
    if replicas < policy.min_replicas:
        limit = LimitApplied(
            limit=Reason.MIN_REPLICAS,
            before=replicas,
            after=policy.min_replicas,
            detail=policy.schedule
            and f"schedule {policy.schedule} requires at least {policy.min_replicas}",
        )
        return policy.min_replicas, (limit,)
    return replicas, ()


def _step(rate: RateLimit, start: int) -> int:
    return max(rate.replicas, math.ceil(start * rate.percent / 100))


def _replicas_at(limit_input: LimitInput, ago_s: float) -> int:
    """Return the replicas requested this long ago; the oldest known if the history is shorter."""
    replicas = limit_input.state.changes[0][1] if limit_input.state.changes else None
    for time_s, value in limit_input.state.changes:
        if time_s <= limit_input.now_s - ago_s:
            replicas = value
    return limit_input.observation.current if replicas is None else replicas
