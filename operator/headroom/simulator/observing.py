"""Scrapes the pods of a fleet: what an autoscaler may observe, never the plant's ground truth."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.observation import CostModel, GatewayRejections, PodSample, PodState
from headroom.scaling.values.policy import Routing
from headroom.simulator.compiled import kernel
from headroom.simulator.compiled.plant_layout import BOUNDS_S, COLUMNS, Column
from headroom.simulator.fleet import Fleet
from headroom.simulator.replica import Replica
from headroom.simulator.scenario import Fault


def answering(fleet: Fleet, silences: Sequence[Fault], seed: int) -> list[Replica]:
    """Return the ready pods that answer a scrape while these faults last."""
    ready = fleet.in_state(PodState.READY)
    for silence in silences:
        hit = {replica.uid for replica in chosen(ready, silence, seed)}
        ready = [replica for replica in ready if replica.uid not in hit]
    return ready


def chosen(replicas: Sequence[Replica], fault: Fault, seed: int) -> list[Replica]:
    """Return the pods that a fault hits, its share but at least one; always the same ones."""

    def rank(replica: Replica) -> bytes:
        key = f"{seed}/{fault.kind}/{fault.start_s}/{replica.uid}"
        return hashlib.blake2b(key.encode(), digest_size=8).digest()

    count = max(1, round(fault.share * len(replicas)))
    return sorted(replicas, key=rank)[:count]


def rows(fleet: Fleet, replicas: Sequence[Replica], now_s: float) -> NDArray[np.float64]:
    """Return one scrape of these pods, [pods, columns + buckets]."""
    kernel.settle(fleet.plant.tables, now_s)
    return fleet.plant.tables.counters[[replica.row for replica in replicas]]


def pod_samples(fleet: Fleet, replicas: Sequence[Replica], now_s: float) -> tuple[PodSample, ...]:
    """Return one scrape of these pods as input of the decision."""
    if not replicas:
        return ()
    table = rows(fleet, replicas, now_s)
    latency = np.cumsum(table[:, COLUMNS:], axis=1).tolist()
    columns = table[:, :COLUMNS].tolist()
    server, claimed = fleet.spec.server, fleet.spec.advertised
    cost = None
    if claimed is not None:
        cost = CostModel(
            fixed_s=claimed.fixed_s,
            per_item_s=claimed.per_item_s,
            max_batch=server.max_batch,
            slots=server.slots,
        )
    return tuple(
        PodSample(
            pod=replica.uid,
            time_s=now_s,
            arrivals=row[Column.ARRIVALS],
            retried=row[Column.RETRIED],
            missed=row[Column.REFUSED] + row[Column.EXPIRED] + row[Column.CANCELLED],
            waiting=int(row[Column.WAITING]),
            running=int(row[Column.RUNNING]),
            latency=LatencyCounts(bounds_s=BOUNDS_S, counts=tuple(counts)),
            batches=row[Column.EXECUTIONS],
            batch_items=row[Column.ITEMS],
            batch_seconds=row[Column.EXECUTION_S],
            cost=cost,
            max_batch=server.max_batch,
            slots=server.slots,
        )
        for replica, row, counts in zip(replicas, columns, latency, strict=True)
    )


_REJECTED = (Column.REFUSED, Column.EXPIRED, Column.CANCELLED)


def rejected_in_front(fleet: Fleet, now_s: float) -> GatewayRejections | None:
    """Return the requests that the queue in front of the replicas has rejected; None without one.

    It counts them, as Headroom's gateway does: no replica ever sees these requests.
    """
    if fleet.spec.network.routing is not Routing.CENTRAL:
        return None
    front = fleet.plant.tables.counters[-1]
    rejected = float(sum(front[column] for column in _REJECTED))
    return GatewayRejections(time_s=now_s, requests=rejected)
