"""The rules: each says how many ready replicas it wants, or nothing where it cannot know.

A rule sees only what it needs, knows no other rule and no bound.
"""

from __future__ import annotations

import math

from headroom.scaling.histogram import attainment
from headroom.scaling.tail_latency import TailLatency
from headroom.scaling.values import CostModel, Policy, Reason, Recommendation, Signals
from headroom.scaling.windows import Windows

SURGE_MARGIN = 1.2
"""Replicas = arrivals x margin / capacity: room for what a window cannot see yet."""
BURST_DEVIATIONS = 4.0
"""A short window counts when it lies this many Poisson deviations above what preceded it."""
REMOVAL_LATENCY_RATIO = 0.9
REMOVAL_UTILIZATION_GAP = 0.05
"""A removal must leave the modelled latency and the utilization this far inside their bounds."""
SMALLEST_WINDOW_REQUESTS = 20
"""Below it a 95th percentile is one request's word: measured latency then recommends nothing."""
_ROUNDING = 1e-9


def _replicas(quotient: float) -> int:
    """Round up, forgiving the last bits of a division: 2.0000000001 is two replicas."""
    return max(0, math.ceil(quotient - _ROUNDING))


def for_latency(policy: Policy, tail: TailLatency, arrival_rps: float) -> Recommendation | None:
    """N_slo: each replica stays below its capacity over the surge margin; None if infeasible."""
    replicas = tail.replicas_for(arrival_rps, policy.latency_target_s, SURGE_MARGIN)
    if replicas is None:
        return None
    capacity_rps = tail.capacity_rps(policy.latency_target_s, max(1, replicas))
    return Recommendation(
        rule=Reason.LATENCY_MODEL,
        replicas=replicas,
        detail=f"{arrival_rps:.3g}/s x {SURGE_MARGIN:g} over {capacity_rps:.3g}/s per replica "
        f"within {policy.latency_target_s:g} s",
    )


def for_utilization(policy: Policy, cost: CostModel, arrival_rps: float) -> Recommendation:
    """N_util: arrivals over what the replicas carry in full batches stay below the ceiling."""
    return Recommendation(
        rule=Reason.UTILIZATION_CEILING,
        replicas=_replicas(arrival_rps / (policy.utilization_ceiling * cost.full_batch_rps)),
        detail=f"{arrival_rps:.3g}/s over {policy.utilization_ceiling:g} x "
        f"{cost.full_batch_rps:.3g}/s per replica",
    )


def for_queue(policy: Policy, cost: CostModel | None, signals: Signals) -> Recommendation | None:
    """N_queue: at most `queue_depth` requests wait per replica; None while that is unknown.

    Only the standing queue counts, the least of a short window (as in CoDel, Nichols and Jacobson
    2012): between two batches requests always wait, and that is no lack of replicas.
    """
    depth = policy.queue_depth if policy.queue_depth is not None else cost and cost.max_batch
    if signals.standing.value is None or not depth:
        return None
    return Recommendation(
        rule=Reason.QUEUE_DEPTH,
        replicas=_replicas(signals.standing.value / depth),
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
        if arrived - expected > BURST_DEVIATIONS * math.sqrt(max(1.0, expected)):
            rates.append(arrived / window_s)
    return max(rates, default=None)


def for_burst(policy: Policy, tail: TailLatency, rate_rps: float | None) -> Recommendation | None:
    """N_burst: what latency and utilization want at the rate of a short window that stands out."""
    if rate_rps is None:
        return None
    wanted = [for_utilization(policy, tail.cost, rate_rps), for_latency(policy, tail, rate_rps)]
    replicas = max(rule.replicas for rule in wanted if rule is not None)
    return Recommendation(
        rule=Reason.BURST, replicas=replicas, detail=f"{rate_rps:.3g}/s in a short window"
    )


def for_measured_latency(
    policy: Policy,
    windows: Windows,
    signals: Signals,
    *,
    now_s: float,
    ready: int,
    ready_since_s: float,
) -> Recommendation | None:
    """N_fb: the percentile missed its target in two windows in a row, so one more than stand.

    Both windows must lie after the last change of the ready replicas, so that a step has had its
    effect before the next is asked for.
    """
    window_s = policy.stable_window_s
    if ready == 0 or now_s - ready_since_s < 2 * window_s:
        return None
    latest = signals.attainment.value
    if latest is None or latest >= policy.latency_percentile:
        return None
    for ago_s in (0.0, window_s):
        total = windows.total(window_s, ago_s=ago_s)
        kept = attainment(windows.bounds_s, total.latency, total.missed, policy.latency_target_s)
        if kept is None or total.ended < SMALLEST_WINDOW_REQUESTS:
            return None
        if kept >= policy.latency_percentile:
            return None
    return Recommendation(
        rule=Reason.LATENCY_MEASURED,
        replicas=ready + 1,
        detail=f"p{100 * policy.latency_percentile:g} above {policy.latency_target_s:g} s "
        f"in two windows of {window_s:g} s",
    )


def for_removal(policy: Policy, tail: TailLatency, arrival_rps: float) -> int:
    """Return the fewest replicas that keep latency and utilization below their lower margins."""
    ceiling = max(
        policy.utilization_ceiling - REMOVAL_UTILIZATION_GAP, 0.5 * policy.utilization_ceiling
    )
    by_utilization = _replicas(arrival_rps / (ceiling * tail.cost.full_batch_rps))
    target_s = REMOVAL_LATENCY_RATIO * policy.latency_target_s
    by_latency = tail.replicas_for(arrival_rps, target_s, SURGE_MARGIN)
    return max(by_utilization, by_latency or 0)
