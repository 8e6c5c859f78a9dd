"""The rules of the arrival rate: replicas for the latency target, utilization and bursts.

Each returns how many ready replicas it needs, or None if it cannot know.

A rule gets only the inputs that it uses, and knows no other rule and no bound.
"""

from __future__ import annotations

import math

from headroom.scaling.forecast.forecast import Expected, Rates
from headroom.scaling.generation.fleet.generating_fleet import GeneratingFleet
from headroom.scaling.serving_model import ReplicaCost, ServingModel
from headroom.scaling.values.decision import Recommendation
from headroom.scaling.values.decision_reason import Reason
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.time_text import format_seconds

_ROUNDING = 1e-9
MOST_REPLICAS = 10**9
"""Above every maxReplicas."""


def rounded_up(quotient: float) -> int:
    """Round up, ignoring rounding errors of a division: 2.0000000001 is two replicas.

    A quotient that is not finite, of a capacity near zero, is more than any bound allows.
    """
    if not quotient < MOST_REPLICAS:
        return MOST_REPLICAS
    return max(0, math.ceil(quotient - _ROUNDING))


def _format_rate(expected_rps: float, now_rps: float | None, occasion: str) -> str:
    """Return the expected arrivals as text, with the present ones if they differ."""
    if now_rps is None or abs(expected_rps - now_rps) <= 0.01 * now_rps:
        return f"{expected_rps:.3g}/s"
    return f"{expected_rps:.3g}/s expected{occasion} ({now_rps:.3g}/s now)"


def _format_target(policy: Policy, target_s: float) -> str:
    """Return the target as text, and how the learned correction changes it.

    Worked: 0.15 s of 0.25 s: "p95 within 150ms (target 250ms / learned latency correction 1.67)".
    """
    if policy.token_targets is not None and policy.token_targets.latency is None:
        return f"whole answers within {format_seconds(target_s)}, which follows from the token SLOs"
    text = f"p{100 * policy.latency_percentile:g} within {format_seconds(target_s)}"
    if target_s == policy.latency_target_s:
        return text
    correction = policy.latency_target_s / target_s
    target = format_seconds(policy.latency_target_s)
    return f"{text} (target {target} / learned latency correction {correction:.3g})"


def for_latency(
    policy: Policy,
    tail: ServingModel,
    arrival_rps: float,
    target_s: float,
    *,
    now_rps: float | None = None,
    occasion: str = "",
) -> Recommendation | None:
    """N_slo: replicas that keep the latency percentile (p95) in its target; None if infeasible.

    `arrival_rps` is the expected rate, `now_rps` the present one, `occasion` what
    determines the expected one; `target_s` is the target over the learned correction.
    """
    replicas = replicas_for_latency(policy, tail, arrival_rps, target_s)
    if replicas is None:
        return None
    margin = policy.tuning.arrival_margin * policy.capacity_factor
    capacity_rps = tail.capacity_rps(target_s, max(1, replicas))
    return Recommendation(
        rule=Reason.LATENCY_MODEL,
        replicas=replicas,
        detail=_format_rate(arrival_rps, now_rps, occasion)
        + (f" x {margin:.3g}" if margin != 1 else "")
        + f" over {capacity_rps:.3g}/s per replica{_bound(policy, tail, target_s, replicas)}",
    )


def replicas_for_latency(
    policy: Policy, tail: ServingModel, arrival_rps: float, target_s: float
) -> int | None:
    """Return the number alone, at most `MOST_REPLICAS`, without the text that explains it."""
    margin = policy.tuning.arrival_margin * policy.capacity_factor
    replicas = tail.replicas_for(arrival_rps, target_s, margin)
    return None if replicas is None else min(MOST_REPLICAS, replicas)


def _bound(policy: Policy, tail: ServingModel, target_s: float, replicas: int) -> str:
    if isinstance(tail, GeneratingFleet):
        return f", where {tail.binds(max(1, replicas))}"
    return f" with {_format_target(policy, target_s)}"


def for_utilization(
    policy: Policy,
    cost: ReplicaCost,
    arrival_rps: float,
    *,
    now_rps: float | None = None,
    occasion: str = "",
) -> Recommendation:
    """N_util: arrivals over the throughput with full batches stay below the ceiling."""
    ceiling = policy.utilization_ceiling / policy.capacity_factor
    return Recommendation(
        rule=Reason.UTILIZATION_CEILING,
        replicas=replicas_for_utilization(policy, cost, arrival_rps),
        detail=_format_rate(arrival_rps, now_rps, occasion)
        + f" over {ceiling:.3g} x {cost.full_batch_rps:.3g}/s per replica",
    )


def replicas_for_utilization(policy: Policy, cost: ReplicaCost, arrival_rps: float) -> int:
    """Return the number alone, without the text that explains it."""
    ceiling = policy.utilization_ceiling / policy.capacity_factor
    return rounded_up(arrival_rps / (ceiling * cost.full_batch_rps))


def for_burst(
    policy: Policy, tail: ServingModel, rate_rps: float | None, target_s: float
) -> Recommendation | None:
    """N_burst: the latency and utilization rules at the rate expected to remain of a burst."""
    if rate_rps is None:
        return None
    return Recommendation(
        rule=Reason.BURST,
        replicas=replicas_for_rate(policy, tail, rate_rps, target_s),
        detail=f"{rate_rps:.3g}/s expected after a burst",
    )


def replicas_for_rate(
    policy: Policy, tail: ServingModel, arrival_rps: float, target_s: float
) -> int:
    """Return the replicas that the latency and utilization rules need for this rate."""
    by_ceiling = replicas_for_utilization(policy, tail.cost, arrival_rps)
    return max(by_ceiling, replicas_for_latency(policy, tail, arrival_rps, target_s) or 0)


def for_removal(policy: Policy, tail: ServingModel, most: Rates, target_s: float) -> int:
    """Return the fewest replicas that a removal may leave: ceiling and latency keep a margin."""
    tuning = policy.tuning
    by_latency = replicas_for_latency(
        policy, tail, most.for_latency_rps, tuning.removal_latency_ratio * target_s
    )
    return max(replicas_for_utilization(policy, tail.cost, most.for_ceiling_rps), by_latency or 0)


def for_expected(policy: Policy, tail: ServingModel, expected: Expected, target_s: float) -> int:
    """Return the replicas that the rules of the rate need together, bursts and removals too."""
    later, burst_rps = expected.later, expected.burst_rps
    return max(
        replicas_for_utilization(policy, tail.cost, later.for_ceiling_rps),
        replicas_for_latency(policy, tail, later.for_latency_rps, target_s) or 0,
        0 if burst_rps is None else replicas_for_rate(policy, tail, burst_rps, target_s),
        for_removal(policy, tail, expected.most, target_s),
    )
