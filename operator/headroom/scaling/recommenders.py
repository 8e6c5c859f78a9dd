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
from headroom.scaling.windows import Windows

_ROUNDING = 1e-9


def _replicas(quotient: float) -> int:
    """Round up, forgiving the last bits of a division: 2.0000000001 is two replicas."""
    return max(0, math.ceil(quotient - _ROUNDING))


def for_latency(
    policy: Policy, tail: TailLatency, arrival_rps: float, target_s: float
) -> Recommendation | None:
    """N_slo: each replica stays below its capacity over the surge margin; None if infeasible.

    `target_s` is the promise over the correction.
    """
    margin = policy.law.surge_margin
    replicas = tail.replicas_for(arrival_rps, target_s, margin)
    if replicas is None:
        return None
    capacity_rps = tail.capacity_rps(target_s, max(1, replicas))
    return Recommendation(
        rule=Reason.LATENCY_MODEL,
        replicas=replicas,
        detail=f"{arrival_rps:.3g}/s x {margin:g} over {capacity_rps:.3g}/s per replica "
        f"within {target_s:.3g} s",
    )


def for_utilization(policy: Policy, cost: CostModel, arrival_rps: float) -> Recommendation:
    """N_util: arrivals over what the replicas carry in full batches stay below the ceiling."""
    return Recommendation(
        rule=Reason.UTILIZATION_CEILING,
        replicas=_replicas(arrival_rps / (policy.utilization_ceiling * cost.full_batch_rps)),
        detail=f"{arrival_rps:.3g}/s over {policy.utilization_ceiling:g} x "
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


def burst_rps(policy: Policy, windows: Windows, now_s: float) -> float | None:
    """Return the arrival rate of the short window that stands out most; None if none does.

    A window is compared with the rest of the stable window *before* it, so that what it shows
    cannot raise its own bar. Worked: 5/s before, 15/s now, 4 s: 60 against 20, z = 8.9.
    """
    watched_s = windows.watched_s(now_s, policy.stable_window_s)
    short_s = [window_s for window_s in policy.burst_windows_s if 2 * window_s <= watched_s]
    if not short_s:
        return None
    *short, watched = windows.arrivals([*short_s, watched_s])
    rates = []
    for window_s, arrived in zip(short_s, short, strict=True):
        expected = (watched - arrived) * window_s / (watched_s - window_s)
        if arrived - expected > policy.law.burst_deviations * math.sqrt(max(1.0, expected)):
            rates.append(arrived / window_s)
    return max(rates, default=None)


def for_burst(
    policy: Policy, tail: TailLatency, rate_rps: float | None, target_s: float
) -> Recommendation | None:
    """N_burst: what latency and utilization want at the rate of a short window that stands out."""
    if rate_rps is None:
        return None
    by_ceiling = for_utilization(policy, tail.cost, rate_rps)
    wanted = [by_ceiling, for_latency(policy, tail, rate_rps, target_s)]
    replicas = max(rule.replicas for rule in wanted if rule is not None)
    return Recommendation(
        rule=Reason.BURST, replicas=replicas, detail=f"{rate_rps:.3g}/s in a short window"
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
