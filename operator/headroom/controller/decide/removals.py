"""A removal that is not made, because something that decide() does not know speaks against it."""

from __future__ import annotations

from dataclasses import replace

from headroom.scaling import Decision, Policy, State
from headroom.scaling.values import Direction, LimitApplied, Reason


def withheld(
    policy: Policy, before: State, state: State, decision: Decision, why: str, reason: Reason
) -> tuple[Decision, State]:
    """Return the decision with nothing removed; bounds and other services' priority go before.

    `before` is the state that was decided from: what was not removed has not flapped.
    """
    kept = min(decision.current, policy.max_replicas)
    yields = any(limit.limit is Reason.YIELDED_TO_PRIORITY for limit in decision.limits)
    if yields or decision.replicas >= kept:
        return decision, state
    limit = LimitApplied(limit=reason, before=decision.replicas, after=kept, detail=why)
    direction = Direction.NONE if kept == decision.current else Direction.DOWN
    words = f"{kept} replicas kept; {why} ({kept} instead of {decision.replicas})"
    decision = replace(
        decision,
        replicas=kept,
        direction=direction,
        reason=reason,
        limits=(*decision.limits, limit),
        message=words,
    )
    return decision, replace(state, decided=kept, flaps=before.flaps)
