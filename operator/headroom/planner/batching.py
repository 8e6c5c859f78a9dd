"""Batch size and wait for a rate and a percentile.

A work-conserving server starts a batch as soon as it is free. Under load batches fill while the
previous one runs, so that a batching wait adds latency and no capacity. The plan uses a wait of 0,
and also gives the longest wait within the target, for servers that need one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from headroom.planner.demand import Service, check_cost
from headroom.planner.errors import require
from headroom.planner.replicas import ReplicaPlan, carried_rps, needs, plan_replicas
from headroom.scaling.values.observation import CostModel

NEARLY = 0.999
"""A larger batch is worth choosing if it carries 0.1 % more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchChoice:
    """The smallest batch size that needs the fewest replicas and has nearly the most capacity."""

    max_batch: int
    wait_s: float
    """Time to wait for a batch to fill: 0 for a work-conserving server."""
    longest_wait_s: float
    """Longest wait within the target; inf without a target."""
    plan: ReplicaPlan


def full_batch_s(cost: CostModel) -> float:
    """Return the time of a full batch. 6 + 4 b ms at 8: 38 ms, which carries 8 / 38 ms = 210/s."""
    check_cost(cost)
    return cost.batch_s(cost.max_batch)


def worst_latency_s(cost: CostModel, wait_s: float) -> float:
    """Return the longest latency while no batch queues: the wait, then a full batch.

    Worked: 20 ms + 38 ms = 58 ms.
    """
    require(
        0 <= wait_s < math.inf,
        "the batching wait must be at least 0",
        f"{wait_s:g} s",
        "0 is no wait",
    )
    return wait_s + full_batch_s(cost)


def choose_batching(service: Service, arrival_rps: float) -> BatchChoice:
    """Choose the batch size, up to the cost's maximum, and the wait for this rate.

    Without batching or without a latency target the largest batch is used: it has most capacity.
    Worked: 200/s on 6 + 4 b ms, p95 within 120 ms, one replica: 8 would carry 210/s and take
    about 176 ms at 95 % utilization; 16 carry 229/s and take about 117 ms.

    Raises ImpossiblePlan as plan_replicas does.
    """
    sized = [
        replace(service, cost=replace(service.cost, max_batch=size)) for size in _sizes(service)
    ]
    replicas = [max(by or 1, busy) for by, busy in (needs(one, arrival_rps) for one in sized)]
    fewest = min(replicas)
    enough = [one for one, number in zip(sized, replicas, strict=True) if number == fewest]
    carried = [carried_rps(one, fewest) for one in enough]
    chosen = next(i for i, rps in enumerate(carried) if rps >= NEARLY * max(carried))
    best = plan_replicas(enough[chosen], arrival_rps)
    target_s = math.inf if service.target_s is None else service.target_s
    return BatchChoice(
        max_batch=best.service.cost.max_batch,
        wait_s=0.0,
        longest_wait_s=max(0.0, target_s - best.chosen.slo_latency_s),
        plan=best,
    )


def _sizes(service: Service) -> list[int]:
    """Return the limit and the usual sizes below it: powers of two, and halfway between them."""
    limit = service.cost.max_batch
    if service.target_s is None or service.cost.per_item_s == 0.0:
        return [limit]
    usual = {size for power in range(10) for size in (2**power, 3 * 2**power)}
    return sorted({size for size in usual if size < limit} | {limit})
