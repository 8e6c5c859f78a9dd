"""The rules: replicas for the latency target (p95), utilization, queue, bursts and backlog.

Each returns how many ready replicas it needs, or None if it cannot know.

A rule gets only the inputs that it uses, and knows no other rule and no bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from headroom.scaling.demand.hidden_demand import GROWTH
from headroom.scaling.forecast.forecast import Rates
from headroom.scaling.generation.fleet.generating_fleet import GeneratingFleet
from headroom.scaling.promise.margin import Margin
from headroom.scaling.promise.reserve import Reserve, Usual
from headroom.scaling.serving_model import ReplicaCost, ServingModel
from headroom.scaling.values.decision import Reason, Recommendation, ReplicaCounts, format_seconds
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.signals import Signals
from headroom.scaling.values.tuning import HOUR_S

_ROUNDING = 1e-9
MOST_REPLICAS = 10**9
"""Above every maxReplicas."""


def _replicas(quotient: float) -> int:
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
    return _replicas(arrival_rps / (ceiling * cost.full_batch_rps))


def for_queue(
    policy: Policy,
    tail: ServingModel | None,
    signals: Signals,
    *,
    counts: ReplicaCounts,
    target_s: float,
    parallel_requests: int | None = None,
) -> Recommendation | None:
    """N_queue: replicas that also process a queue above its bound in time; None while unknown.

    Only the standing queue counts, the minimum over a short window (as in CoDel, Nichols and
    Jacobson 2012): some requests always wait between two batches, and that is no lack of replicas.
    The part above `queue_depth` per ready replica must be worked off within `drain_s`: the rule
    adds excess / drain_s to the arrivals. Worked: 96 waiting at 2 replicas of depth 8 are 80 too
    many; with 180 s the rule plans for 0.44/s more than arrive. While replicas are warming it waits
    for them. While no rate is known, it assumes that the ready replicas are at capacity, and asks
    for up to thrice as many: for how long the queue has grown is not known either.

    While no cost is known, replicas are added until there is room for the queue. A replica executes
    `parallel_requests` at once, and as many may wait. Worked: 12 wait and 4 run at one replica that
    executes 4: two replicas have room for 16.
    """
    depth = policy.queue_depth
    if depth is None:
        depth = parallel_requests if tail is None else tail.cost.max_batch
    if signals.standing_queue.value is None or not depth or counts.warming > 0:
        return None
    ready = counts.ready
    excess = signals.standing_queue.value - depth * ready
    if excess <= 0:
        return None
    replicas: int | None
    if tail is None:
        replicas = _with_room(signals.standing_queue.value, depth, parallel_requests or 0, ready)
    else:
        rate_rps = signals.arrival_rps.value
        if rate_rps is None:
            rate_rps = ready * tail.capacity_rps(target_s, max(1, ready))
        rate_rps += excess / policy.tuning.drain_s
        replicas = replicas_for_latency(policy, tail, rate_rps, target_s)
        if replicas is not None and signals.arrival_rps.value is None:
            replicas = min(replicas, _most_unknown(ready))
    if replicas is None:
        return None
    return Recommendation(
        rule=Reason.QUEUE_DEPTH,
        replicas=replicas,
        detail=f"standing queue of {signals.standing_queue.value:.0f}, at most {depth} per replica",
    )


def _with_room(queue: float, depth: int, parallel_requests: int, ready: int) -> int:
    """Return the replicas that have room for a queue above its bound, up to thrice the ready ones.

    The next step follows when these are ready.
    """
    enough = _replicas((queue + parallel_requests * ready) / (depth + parallel_requests))
    return min(max(enough, ready + 1), _most_unknown(ready))


def _most_unknown(ready: int) -> int:
    """Return the most replicas to request while the rate or the cost is not known."""
    return max(1, math.floor(GROWTH * ready))


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


def for_error_budget(margin: Margin, carrying: int) -> Recommendation | None:
    """N_budget: the replicas for arrivals and the learned margin; None without one."""
    replicas = margin.replicas(carrying)
    if replicas <= carrying:
        return None
    return Recommendation(
        rule=Reason.ERROR_BUDGET,
        replicas=replicas,
        detail=f"{carrying} for the arrivals and a learned margin of {replicas - carrying}",
    )


def for_reserve(
    policy: Policy, reserve: Reserve, carrying: int, start_s: float, usual: Usual | None = None
) -> Recommendation | None:
    """N_reserve: the replicas for arrivals and spare ones for a surge; None without any."""
    allowed = 1.0 - policy.latency_percentile
    replicas = reserve.replicas(carrying, start_s, allowed, usual)
    if replicas <= carrying:
        return None
    budget = f"an hour's error budget lasts {HOUR_S * allowed:.3g}s"
    if usual is not None:
        budget += f", {usual.left(allowed):.3g}s are left"
    return Recommendation(
        rule=Reason.RESERVE,
        replicas=replicas,
        detail=f"{carrying} for the arrivals and {replicas - carrying} in reserve: "
        f"a start takes {start_s:.3g}s, {budget}",
    )


def for_backlog(
    policy: Policy, tail: ServingModel, arrival_rps: float, queues: Sequence[int], target_s: float
) -> Recommendation | None:
    """N_backlog: replicas with which backlogged ones process their queues in time.

    `queues` are the queues of replicas that hold more requests than they serve within the target.
    Such a replica answers everything late, and routing that does not see load still sends it its
    full share. Only a smaller share for all replicas helps: with it the replica works off its queue
    within `drain_s`, using at most `_LARGEST_DRAIN_SHARE` of its capacity. Worked: 1500 wait at
    each of seven of 19 replicas of 10.3/s; 150/s arrive, 7.9/s at each. 8.3/s would be needed for
    the queue in 180 s; 5.2/s are given, by 30 replicas.

    Routing that sees load sends a replica nothing while others have less: the other replicas must
    carry all arrivals until its queue is as short. Worked: 2000 wait at each of three of nine
    replicas of 4/s, 22/s arrive, for which eight would do: the six others are at 92 % for eight
    minutes. 11 are given.
    """
    if not queues:
        return None
    if policy.routing.sees_load:
        carrying = replicas_for_latency(policy, tail, arrival_rps, target_s)
        return None if carrying is None else _added_to(carrying, queues)
    full_rps = tail.cost.full_batch_rps
    needed_rps = sum(queues) / len(queues) / policy.tuning.drain_s
    spare_rps = min(_LARGEST_DRAIN_SHARE * full_rps, needed_rps)
    return Recommendation(
        rule=Reason.QUEUE_DEPTH,
        replicas=_replicas(arrival_rps / (full_rps - spare_rps)),
        detail=f"{sum(queues)} requests wait at {len(queues)} backlogged replicas",
    )


_LARGEST_DRAIN_SHARE = 0.5


def _added_to(carrying: int, queues: Sequence[int]) -> Recommendation:
    return Recommendation(
        rule=Reason.QUEUE_DEPTH,
        replicas=carrying + len(queues),
        detail=f"{carrying} for the arrivals, because routing avoids {len(queues)} replicas with "
        f"{sum(queues)} waiting",
    )


def for_removal(policy: Policy, tail: ServingModel, most: Rates, target_s: float) -> int:
    """Return the fewest replicas that a removal may leave: ceiling and latency keep a margin."""
    tuning = policy.tuning
    by_latency = replicas_for_latency(
        policy, tail, most.for_latency_rps, tuning.removal_latency_ratio * target_s
    )
    return max(replicas_for_utilization(policy, tail.cost, most.for_ceiling_rps), by_latency or 0)
