"""How many requests may be in flight: Envoy's runtime, which changes no cluster.

A bound below twice the batch is a trap: replicas then settle at half batches. Above it, what could
not be answered in time anyway need not wait: what is beyond twice that which a replica answers
within the target is refused at the door.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from headroom.gateway.type_urls import RUNTIME, Json
from headroom.scaling.values import CostModel

LAYER = "in-flight"
GATEWAYS = "headroom.gateways"
BATCHES = 2
LATE_BY = 2.0
"""Targets after which an answer is of no use to anybody."""


def in_flight_per_replica(cost: CostModel, target_s: float) -> int:
    """Return how many requests one replica may have in flight.

    Worked: batches of 4 in 0.39 s, target 1.5 s: 4 / 0.39 x 2 x 1.5 = 30.8, so 31; with a target of
    0.1 s twice the batch, 8.
    """
    in_time = math.ceil(cost.full_batch_rps * LATE_BY * target_s)
    return max(busy_per_replica(cost), in_time)


def busy_per_replica(cost: CostModel) -> int:
    """Return with how many requests in flight a replica is always busy: twice its batch.

    Worked: batches of 4: 8.
    """
    return BATCHES * cost.slots * cost.max_batch


def build(bounds: Mapping[str, int], gateways: Iterable[str] = ()) -> Json:
    """Build the layer from the bound of each cluster; one that is not in it keeps the default.

    With the gateways' addresses, for who stands by (`deploy/gateway/standby.py`).
    """
    fields: Json = {
        f"circuit_breakers.{cluster}.default.max_requests": most
        for cluster, most in sorted(bounds.items())
    }
    if addresses := " ".join(sorted(gateways)):
        fields[GATEWAYS] = addresses
    return {"@type": RUNTIME, "name": LAYER, "layer": fields}
