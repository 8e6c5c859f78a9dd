"""Limits in both directions: the allocation of a pool that is too small, then the bounds."""

from __future__ import annotations

from headroom.scaling.limits.limit_input import Limited, LimitInput
from headroom.scaling.values.decision import LimitApplied
from headroom.scaling.values.decision_reason import Reason
from headroom.scaling.values.policy import Policy


def apply_allocation(limit_input: LimitInput, replicas: int) -> Limited:
    """Return the number that another service's priority leaves, never below the floor.

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
