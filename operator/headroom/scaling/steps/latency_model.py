"""The latency model of a tick: replica speeds and routing in, and the corrected target."""

from __future__ import annotations

from collections.abc import Sequence

from headroom.scaling.cost.replica_speeds import ReplicaSpeeds
from headroom.scaling.demand.connections import MOST
from headroom.scaling.frozen import replace
from headroom.scaling.latency.mixed_fleet import MixedFleet
from headroom.scaling.latency.sticky_connections import CONNECTIONS, REPAIRED, UNLUCKY
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.policy import Policy, Routing
from headroom.scaling.values.tuning import Component


def tail_of(
    policy: Policy,
    cost: CostModel | None,
    routing: Routing,
    speeds: ReplicaSpeeds,
    ready: Sequence[str],
    connections: int = CONNECTIONS,
) -> TailLatency | None:
    """Return the latency model: of the mean replica if the routing sees load, else of all of them.

    Routing that sees load gives each replica what it can carry; any other gives a slow replica the
    same share as all others, and a fast one no more.
    """
    if cost is None:
        return None
    percentile, usual = policy.latency_percentile, cost
    if routing is Routing.STICKY and connections >= MOST:
        routing = Routing.RANDOM
    unlucky = REPAIRED if policy.rebalances else UNLUCKY
    slow, mean = speeds.slow(ready), 1.0
    if routing.sees_load:
        slow, mean = (), speeds.pooled(ready)
    elif slow:
        mean = speeds.mean(ready)
    if mean != 1.0:
        cost = replace(cost, fixed_s=mean * cost.fixed_s, per_item_s=mean * cost.per_item_s)
    if slow:
        return MixedFleet(
            cost=cost,
            percentile=percentile,
            routing=routing,
            connections=connections,
            unlucky=unlucky,
            usual=usual,
            slow=slow,
        )
    return TailLatency(
        cost=cost,
        percentile=percentile,
        routing=routing,
        connections=connections,
        unlucky=unlucky,
    )


def corrected_target_s(policy: Policy, tail: TailLatency | None, correction_factor: float) -> float:
    """Return the target for the model: the SLO target over the learned correction.

    Never below the latency of an idle replica: no number of replicas could meet that.
    """
    if tail is None or not policy.tuning.has(Component.CORRECTION):
        return policy.latency_target_s
    lowest_s = min(policy.latency_target_s, _ABOVE_IDLE * tail.idle_s)
    return max(policy.latency_target_s / correction_factor, lowest_s)


_ABOVE_IDLE = 1.1
