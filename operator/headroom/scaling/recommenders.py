"""The rules: each says how many ready replicas it wants, or nothing where it cannot know.

A rule sees only what it needs, knows no other rule and no bound.
"""

from __future__ import annotations

import math

from headroom.scaling.tail_latency import TailLatency
from headroom.scaling.values import (
    CostModel,
    Policy,
    Reason,
    Recommendation,
    ReplicaCounts,
    Signals,
)

_ROUNDING = 1e-9


def _replicas(quotient: float) -> int:
    """Round up, forgiving the last bits of a division: 2.0000000001 is two replicas."""
    return max(0, math.ceil(quotient - _ROUNDING))


def _said(expected_rps: float, now_rps: float | None) -> str:
    """Return the arrivals in words, and the present ones where others are expected."""
    if now_rps is None or abs(expected_rps - now_rps) <= 0.01 * now_rps:
        return f"{expected_rps:.3g}/s"
    return f"{expected_rps:.3g}/s expected ({now_rps:.3g}/s now)"


def for_latency(
    policy: Policy,
    tail: TailLatency,
    arrival_rps: float,
    target_s: float,
    *,
    now_rps: float | None = None,
) -> Recommendation | None:
    """N_slo: each replica stays below its capacity over the surge margin; None if infeasible.

    `arrival_rps` is what is expected, `now_rps` what arrives; `target_s` is the promise over the
    correction.
    """
    margin = policy.law.surge_margin
    replicas = tail.replicas_for(arrival_rps, target_s, margin)
    if replicas is None:
        return None
    capacity_rps = tail.capacity_rps(target_s, max(1, replicas))
    return Recommendation(
        rule=Reason.LATENCY_MODEL,
        replicas=replicas,
        detail=_said(arrival_rps, now_rps)
        + (f" x {margin:g}" if margin != 1 else "")
        + f" over {capacity_rps:.3g}/s per replica within {target_s:.3g} s",
    )


def for_utilization(
    policy: Policy, cost: CostModel, arrival_rps: float, *, now_rps: float | None = None
) -> Recommendation:
    """N_util: arrivals over what the replicas carry in full batches stay below the ceiling."""
    return Recommendation(
        rule=Reason.UTILIZATION_CEILING,
        replicas=_replicas(arrival_rps / (policy.utilization_ceiling * cost.full_batch_rps)),
        detail=f"{_said(arrival_rps, now_rps)} over {policy.utilization_ceiling:g} x "
        f"{cost.full_batch_rps:.3g}/s per replica",
    )


def for_queue(
    policy: Policy,
    tail: TailLatency | None,
    signals: Signals,
    *,
    counts: ReplicaCounts,
    target_s: float,
) -> Recommendation | None:
    """N_queue: what also works off the queue beyond its bound in time; None while unknown.

    Only the standing queue counts, the least of a short window (as in CoDel, Nichols and Jacobson
    2012): between two batches requests always wait, and that is no lack of replicas. What stands
    beyond `queue_depth` per ready replica is to be gone within `drain_s`: the arrivals are taken to
    be higher by excess / drain_s. Worked: 96 stand at 2 replicas of depth 8, 80 too many, 180 s:
    0.44/s more than arrive. While replicas are on their way it waits for them. While no rate is
    known, the ready replicas are taken to be at capacity; while no cost is known either, one more.
    """
    depth = policy.queue_depth if policy.queue_depth is not None else tail and tail.cost.max_batch
    if signals.standing.value is None or not depth or counts.warming > 0:
        return None
    ready = counts.ready
    excess = signals.standing.value - depth * ready
    if excess <= 0:
        return None
    replicas: int | None = ready + 1
    if tail is not None:
        rate_rps = signals.arrival_rps.value
        if rate_rps is None:
            rate_rps = ready * tail.capacity_rps(target_s, max(1, ready))
        rate_rps += excess / policy.law.drain_s
        replicas = tail.replicas_for(rate_rps, target_s, policy.law.surge_margin)
    if replicas is None:
        return None
    return Recommendation(
        rule=Reason.QUEUE_DEPTH,
        replicas=replicas,
        detail=f"{signals.standing.value:.0f} kept waiting, at most {depth} per replica",
    )


def for_burst(
    policy: Policy, tail: TailLatency, rate_rps: float | None, target_s: float
) -> Recommendation | None:
    """N_burst: what latency and utilization want at the rate that a burst is expected to leave."""
    if rate_rps is None:
        return None
    by_ceiling = for_utilization(policy, tail.cost, rate_rps)
    wanted = [by_ceiling, for_latency(policy, tail, rate_rps, target_s)]
    replicas = max(rule.replicas for rule in wanted if rule is not None)
    return Recommendation(
        rule=Reason.BURST, replicas=replicas, detail=f"{rate_rps:.3g}/s expected of a burst"
    )


def for_removal(policy: Policy, tail: TailLatency, arrival_rps: float, target_s: float) -> int:
    """Return the fewest replicas that keep latency and utilization below their lower margins."""
    law, ceiling = policy.law, policy.utilization_ceiling
    lower = max(ceiling - law.removal_utilization_gap, 0.5 * ceiling)
    by_utilization = _replicas(arrival_rps / (lower * tail.cost.full_batch_rps))
    by_latency = tail.replicas_for(
        arrival_rps, law.removal_latency_ratio * target_s, law.surge_margin
    )
    return max(by_utilization, by_latency or 0)
