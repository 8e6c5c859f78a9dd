"""The rules of queues: replicas that work off waiting requests, of all replicas or of some."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headroom.scaling.demand.hidden_demand import GROWTH
from headroom.scaling.rules.rate_rules import replicas_for_latency, rounded_up
from headroom.scaling.serving_model import ServingModel
from headroom.scaling.values.decision import Recommendation, ReplicaCounts
from headroom.scaling.values.decision_reason import Reason
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.signals import Signals


def for_queue(
    policy: Policy,
    tail: ServingModel | None,
    signals: Signals,
    *,
    counts: ReplicaCounts,
    target_s: float,
    parallel_requests: int | None = None,
) -> Recommendation | None:
    """N_queue: replicas that also work off a queue above its bound in time; None while unknown.

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
            replicas = min(replicas, most_unknown(ready))
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
    enough = rounded_up((queue + parallel_requests * ready) / (depth + parallel_requests))
    return min(max(enough, ready + 1), most_unknown(ready))


def most_unknown(ready: int) -> int:
    """Return the most replicas to request while the rate or the cost is not known."""
    return max(1, math.floor(GROWTH * ready))


def for_backlog(
    policy: Policy, tail: ServingModel, arrival_rps: float, queues: Sequence[int], target_s: float
) -> Recommendation | None:
    """N_backlog: replicas with which backlogged ones work off their queues in time.

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
        replicas=rounded_up(arrival_rps / (full_rps - spare_rps)),
        detail=f"{sum(queues)} requests wait at {len(queues)} backlogged replicas",
    )


_LARGEST_DRAIN_SHARE = 0.5


def _added_to(carrying: int, queues: Sequence[int]) -> Recommendation:
    return Recommendation(
        rule=Reason.QUEUE_DEPTH,
        replicas=carrying + len(queues),
        detail=f"{carrying} for the arrivals, which routing sends past {len(queues)} with "
        f"{sum(queues)} waiting",
    )
