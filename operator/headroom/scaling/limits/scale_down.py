"""Limits of a removal: every reason to keep replicas, then the rate."""

from __future__ import annotations

from headroom.scaling.limits.limit_input import (
    Limited,
    LimitHistory,
    LimitInput,
    replicas_at,
    step_of,
)
from headroom.scaling.values.decision import LimitApplied
from headroom.scaling.values.decision_reason import Reason
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.signals import Freshness
from headroom.scaling.values.tuning import Component

PINNED_HOLD_S, REBALANCED_HOLD_S = 900.0, 300.0
"""While connections stay with their replicas: one that is removed and added again stays idle until
they are spread. Until then shares differ, and one that hides requests is no contradiction."""

UNMEASURED_START = 3.0
"""Factor on the configured hold until a cold start was measured. Worked: 90 s become 270 s, about
what the HPA waits, and what a large model takes to load."""


def limit_decrease(limit_input: LimitInput) -> Limited:
    """Return how far the replicas may fall now; `current` if any limit objects.

    Missing or stale metrics, a rollout, an incomplete history, the other pool of a pair and a hold
    keep all replicas.
    """
    policy, current = limit_input.policy, limit_input.observation.current
    lowest = max(limit_input.desired.replicas, policy.min_replicas)

    held_s = hold_s(policy, limit_input.state)
    if limit_input.pinned:
        held_s = max(held_s, REBALANCED_HOLD_S if policy.rebalances else PINNED_HOLD_S)
    objection = _objection(limit_input, held_s)
    if objection is not None:
        return current, (LimitApplied(limit=objection, before=lowest, after=current),)
    if why := limit_input.held_for:
        return current, (_held_for_partner(lowest, current, why),)
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
    start = replicas_at(limit_input, policy.scale_down_rate.period_s)
    slowed = min(current, max(held, start - step_of(policy.scale_down_rate, start)))
    if slowed != held:
        applied += (LimitApplied(limit=Reason.RATE_LIMITED, before=held, after=slowed),)
    return slowed, applied


def _held_for_partner(lowest: int, current: int, why: str) -> LimitApplied:
    return LimitApplied(limit=Reason.HELD_FOR_PARTNER, before=lowest, after=current, detail=why)


def _objection(limit_input: LimitInput, held_s: float) -> Reason | None:
    """Return why no replica may go now; None if some may."""
    if limit_input.signals.freshness is Freshness.MISSING:
        return Reason.METRICS_MISSING
    if limit_input.contradicted:
        return Reason.REPLICA_CONTRADICTS
    if limit_input.signals.freshness is Freshness.STALE:
        return Reason.METRICS_STALE
    if limit_input.observation.rolling:
        return Reason.ROLLING_OUT
    if not limit_input.known:
        return Reason.COST_UNKNOWN
    if limit_input.state.coverage.length_s(limit_input.now_s) < held_s:
        return Reason.INSUFFICIENT_HISTORY
    return None


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


def _needed_now(limit_input: LimitInput) -> int:
    """Return this tick's entry in the scale-down window."""
    entries = limit_input.state.needed_high.entries
    return entries[-1][1] if entries else 0
