"""Limits of an increase: stabilization, rate, no effect, capacity shortage.

None of them goes below what the utilization ceiling needs, unless more replicas would only wait for
what they share.
"""

from __future__ import annotations

from headroom.scaling.limits.limit_input import Limited, LimitInput, replicas_at, step_of
from headroom.scaling.values.decision import LimitApplied
from headroom.scaling.values.decision_reason import Reason


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
        start = replicas_at(limit_input, policy.scale_up_rate.period_s)
        most = start + step_of(policy.scale_up_rate, start)
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
