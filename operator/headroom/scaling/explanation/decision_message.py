"""The sentence that explains a decision to people, and the note on a gap to the model."""

from __future__ import annotations

from headroom.scaling.generation.fleet.generating_fleet import GeneratingFleet
from headroom.scaling.serving_model import ServingModel
from headroom.scaling.values.decision import Decision, ReplicaCounts
from headroom.scaling.values.decision_reason import Direction, Reason
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.signals import Signals
from headroom.scaling.values.time_text import format_seconds

_LIMITS = {
    Reason.SCALE_UP_STABILIZED: "more replicas have not been needed for the whole scale-up window",
    Reason.SCALE_DOWN_STABILIZED: "fewer have not been enough for the whole scale-down window",
    Reason.SCALE_DOWN_MARGIN: "fewer would bring latency or utilization too close to its bound",
    Reason.RATE_LIMITED: "the configured rate limits the step",
    Reason.NO_EFFECT: "more replicas have not helped, so no more are requested",
    Reason.CAPACITY_SHORTAGE: "replicas are unschedulable or broken, so no more are requested",
    Reason.YIELDED_TO_PRIORITY: "a service of higher priority gets the last accelerators",
    Reason.HELD_FOR_PARTNER: "the other pool of the pair is not well, so no replica is removed",
    Reason.ROLLING_OUT: "no replica is removed during a rollout",
    Reason.METRICS_STALE: "metrics are stale, so no replica is removed",
    Reason.METRICS_MISSING: "metrics are missing, so the replica count is kept",
    Reason.REPLICA_CONTRADICTS: "a replica counts too few requests compared with the others, or "
    "they contradict its metrics, so none is removed",
    Reason.COST_UNKNOWN: "the cost of a request is not known yet, so no replica is removed",
    Reason.INSUFFICIENT_HISTORY: "metrics do not cover a whole scale-down window yet",
    Reason.MAX_REPLICAS: "maxReplicas allows no more",
    Reason.MIN_REPLICAS: "minReplicas requires more",
}


def gap_to_model(
    policy: Policy, signals: Signals, tail: ServingModel | None, ready: int, correction: float
) -> str:
    """Return measured and modelled latency where only the measured one is over the target."""
    measured, rate_rps = signals.latency_s, signals.arrival_rps.value
    target_s = policy.latency_target_s
    if tail is None or rate_rps is None or not ready or not measured.fresh:
        return ""
    if isinstance(tail, GeneratingFleet):  # its promises are shown one by one
        return ""
    if measured.value is None or measured.value <= target_s:
        return ""
    modelled_s = tail.latency_s(rate_rps, ready)
    if modelled_s > target_s:
        return ""
    return (
        f"p{100 * policy.latency_percentile:g} is {format_seconds(measured.value)}, "
        f"the model expects {format_seconds(modelled_s)} at {ready} ready "
        f"(learned latency correction {correction:.3g})"
    )


def counted(replicas: int) -> str:
    """Return the number with its noun."""
    return f"{replicas} replica" if replicas == 1 else f"{replicas} replicas"


def message(policy: Policy, decision: Decision, held_s: float) -> str:
    """Return one sentence for people: the change, the rule that needs it, the limits.

    `held_s`: for how long no rule needed the replicas that are removed.
    """
    replicas, direction = decision.replicas, decision.direction
    strongest, limits, counts = decision.strongest, decision.limits, decision.counts
    kept = direction is Direction.NONE
    parts = [f"{counted(replicas)} kept" if kept else f"{decision.current} -> {counted(replicas)}"]
    if strongest is not None:
        parts.append(f"{strongest.rule.value} needs {strongest.replicas} ({strongest.detail})")
        more = min(counts.broken + counts.late, replicas - strongest.replicas)
        if direction is not Direction.DOWN and more > 0 and not limits:
            parts.append(f"{more} more in place of broken or late ones")
    yielded = any(limit.limit is Reason.YIELDED_TO_PRIORITY for limit in limits)
    if direction is Direction.DOWN and not yielded:
        parts.append(f"no more were needed for {held_s:.3g}s")
    parts += [
        f"{limit.detail or _LIMITS[limit.limit]} ({limit.after} instead of {limit.before})"
        for limit in limits
    ]
    if policy.schedule and replicas == policy.min_replicas and not limits:
        parts.append(f"schedule {policy.schedule} requires at least {policy.min_replicas}")
    parts += decision.notes
    if coming := _not_ready(counts):
        parts.append(f"{counts.ready} ready, {coming}")
    return "; ".join(parts)


def _not_ready(counts: ReplicaCounts) -> str:
    """Return how many pods are not ready, by the reason; empty if all are."""
    numbers = (
        (counts.warming, "warming"),
        (counts.late, "late"),
        (counts.unschedulable, "unschedulable"),
        (counts.broken, "broken"),
    )
    return ", ".join(f"{number} {word}" for number, word in numbers if number)
