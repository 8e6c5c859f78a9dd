"""The decision in words and in counterfactuals: what one replica more or less would do."""

from __future__ import annotations

from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.values import (
    Counterfactual,
    Direction,
    LimitApplied,
    Policy,
    Reason,
    Recommendation,
    ReplicaCounts,
)

_LIMITS = {
    Reason.SCALE_UP_STABILIZED: "more is wanted, but not for the whole scale-up window yet",
    Reason.SCALE_DOWN_STABILIZED: "fewer would do now, but not for the whole scale-down window yet",
    Reason.SCALE_DOWN_MARGIN: "fewer would come too close to the latency target or the ceiling",
    Reason.RATE_LIMITED: "the configured rate cuts the step",
    Reason.CAPACITY_SHORTAGE: "replicas are unschedulable or broken, more would only multiply them",
    Reason.YIELDED_TO_PRIORITY: "a service of higher priority gets the last accelerators",
    Reason.ROLLING_OUT: "a rollout is replacing pods, nothing is removed meanwhile",
    Reason.METRICS_STALE: "signals are out of date, nothing is removed",
    Reason.METRICS_MISSING: "signals are absent, what stands is held",
    Reason.COST_UNKNOWN: "what a request costs is not known yet",
    Reason.INSUFFICIENT_HISTORY: "not watched for a whole scale-down window yet",
    Reason.MAX_REPLICAS: "maxReplicas allows no more",
    Reason.MIN_REPLICAS: "minReplicas asks for no fewer",
}


def counterfactuals(
    tail: TailLatency, arrival_rps: float, replicas: int
) -> tuple[Counterfactual, ...]:
    """Return what the model expects at N-1, N and N+1 ready replicas and these arrivals."""
    return tuple(
        Counterfactual(
            replicas=number,
            latency_s=tail.latency_s(arrival_rps, number),
            utilization=arrival_rps / (number * tail.cost.full_batch_rps),
        )
        for number in range(max(1, replicas - 1), replicas + 2)
    )


def message(
    policy: Policy,
    direction: Direction,
    current: int,
    replicas: int,
    strongest: Recommendation | None,
    limits: tuple[LimitApplied, ...],
    counts: ReplicaCounts,
    held_s: float,
) -> str:
    """Return one sentence for people: the move, what asks for it, what limits it.

    `held_s`: for how long nothing may have needed what is removed.
    """
    move = {
        Direction.UP: f"{current} -> {replicas} replicas",
        Direction.DOWN: f"{current} -> {replicas} replicas",
        Direction.NONE: f"{replicas} replicas stay",
    }[direction]
    parts = [move]
    if strongest is not None:
        parts.append(f"{strongest.rule.value} wants {strongest.replicas} ({strongest.detail})")
    yielded = any(limit.limit is Reason.YIELDED_TO_PRIORITY for limit in limits)
    if direction is Direction.DOWN and not yielded:
        parts.append(f"no more needed for {held_s:.3g} s")
    parts += [
        f"{limit.detail or _LIMITS[limit.limit]} ({limit.before} -> {limit.after})"
        for limit in limits
    ]
    if policy.schedule and replicas == policy.min_replicas and not limits:
        parts.append(f"schedule {policy.schedule} asks for no fewer")
    coming = [
        f"{number} {word}"
        for number, word in (
            (counts.warming, "warming"),
            (counts.late, "late"),
            (counts.unschedulable, "unschedulable"),
            (counts.broken, "broken"),
        )
        if number
    ]
    if coming:
        parts.append(f"{counts.ready} ready, " + ", ".join(coming))
    return "; ".join(parts)


def binding(
    policy: Policy,
    direction: Direction,
    strongest: Recommendation | None,
    limits: tuple[LimitApplied, ...],
    counts: ReplicaCounts,
    current: int,
) -> Reason:
    """Return the rule or limit that would have to change for the number to change."""
    if limits:
        return limits[-1].limit
    if direction is Direction.NONE and strongest is not None:
        if strongest.replicas > counts.ready and counts.warming:
            return Reason.REPLICAS_WARMING
        if strongest.replicas < current == policy.min_replicas:
            return Reason.MIN_REPLICAS
    if strongest is None:
        return Reason.WITHIN_TARGET
    if strongest.replicas <= policy.min_replicas and direction is not Direction.UP:
        return Reason.MIN_REPLICAS
    return strongest.rule
