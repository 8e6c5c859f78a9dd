"""In-flight bounds as Envoy runtime values, so that a new bound does not rebuild a cluster.

A bound below twice the batch size makes replicas settle at half batches. Above that, the gateway
rejects what the replicas cannot answer within the target. Replicas answer in order of arrival, so
one batch too many that waits makes every request late for as long as the load exceeds the capacity.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from headroom.gateway.bounds import SERVICE_CONNECTIONS
from headroom.gateway.clusters import PRIORITIES
from headroom.gateway.type_urls import RUNTIME, Json
from headroom.scaling.values.observation import CostModel

LAYER = "in-flight"
GATEWAYS = "headroom.gateways"
BATCHES = 2
MOST_PER_REPLICA = 1 << 20
"""A cost that a tenant's pods report may be next to nothing; Envoy counts to 2^32."""
IN_TIME = 0.95
"""Share of the target in which the batches of the bound end; the rest is for their variation."""


def in_flight_per_replica(cost: CostModel, target_s: float) -> int:
    """Return the in-flight limit of one replica.

    Example: batches of 4 in 0.39 s, target 1.5 s: 3 batches end within 1.43 s, so 12; with a target
    of 0.1 s twice the batch, 8.
    """
    full_s = max(cost.batch_s(cost.max_batch), IN_TIME * target_s / MOST_PER_REPLICA)
    in_time = cost.slots * cost.max_batch * math.floor(IN_TIME * target_s / full_s)
    return max(busy_per_replica(cost), min(in_time, MOST_PER_REPLICA))


def busy_per_replica(cost: CostModel) -> int:
    """Return the requests in flight that keep a replica busy: twice its batch size times slots.

    Example: batches of 4 need 8.
    """
    return min(BATCHES * cost.slots * cost.max_batch, MOST_PER_REPLICA)


def build(
    bounds: Mapping[str, int], gateways: Iterable[str] = (), listeners: Iterable[str] = ()
) -> Json:
    """Build the layer with the bound of each cluster; other clusters keep the default.

    A listener admits its share of the gateway's connections.

    It has the gateways' addresses for the standby process (`deploy/gateway/standby.py`).
    """
    fields: Json = {
        f"circuit_breakers.{cluster}.{priority.lower()}.max_requests": most
        for cluster, most in sorted(bounds.items())
        for priority in PRIORITIES
    }
    for name in listeners:
        fields[f"envoy.resource_limits.listener.{name}.connection_limit"] = SERVICE_CONNECTIONS
    if addresses := " ".join(sorted(gateways)):
        fields[GATEWAYS] = addresses
    return {"@type": RUNTIME, "name": LAYER, "layer": fields}
