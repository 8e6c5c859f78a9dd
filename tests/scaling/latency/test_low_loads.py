"""The tail-latency model of fast models: large batches that cost hardly more than a request."""

from __future__ import annotations

import numpy as np
import pytest

from headroom.scaling.latency import latency_table_axes as axes
from headroom.scaling.latency.latency_tables import stored_table
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.policy import Routing
from latency_tables.fleet_runs import Cell, percentiles
from latency_tables.surface import cell


@pytest.mark.parametrize(
    ("replicas", "place", "exponent", "batch"),
    [(2, 1, 0.1, -1), (16, 4, 0.02, 5), (1, 0, 0.05, -1)],
)
def test_shipped_table_has_the_low_loads_of_large_batches(
    replicas: int, place: int, exponent: float, batch: int
) -> None:
    most, routing = axes.BATCHES[batch], Routing.LEAST_IN_FLIGHT if replicas > 1 else Routing.RANDOM
    made = cell(routing, replicas, most**-exponent, most, 0.0)
    shipped = stored_table(routing)[place, axes.EXPONENTS.index(exponent), batch, 0]
    assert np.abs(made - shipped).max() <= 0.51 * axes.STEP


@pytest.mark.parametrize(
    ("max_batch", "gain", "replicas", "target_s", "in_time"),
    [
        (64, 1.05, 1, 0.015, 0.93),
        (64, 1.05, 2, 0.015, 0.93),
        (64, 1.05, 4, 0.015, 0.92),
        (64, 1.05, 4, 0.017, 0.9),
        (64, 1.3, 2, 0.015, 0.93),
        (64, 1.3, 4, 0.015, 0.93),
        (32, 2.0, 2, 0.015, 0.93),
        (32, 2.0, 4, 0.015, 0.92),
        (32, 1.1, 4, 0.017, 0.92),
        (16, 1.1, 4, 0.018, 0.91),
        (8, 1.1, 4, 0.018, 0.91),
        (8, 1.02, 4, 0.018, 0.92),
        # a request hardly ever waits until nearly all of them are busy
        (8, 1.1, 16, 0.015, 0.9),
        (64, 1.3, 16, 0.013, 0.93),
    ],
)
def test_large_batches_keep_targets_below_two_executions(
    max_batch: int, gain: float, replicas: int, target_s: float, in_time: float
) -> None:
    """At a tenth of full batches a request nearly always waits for an execution that has begun."""
    per_item_s = 0.010 * (gain - 1.0) / (max_batch - 1)
    cost = CostModel(fixed_s=0.010 - per_item_s, per_item_s=per_item_s, max_batch=max_batch)
    routing = Routing.LEAST_IN_FLIGHT if replicas > 1 else Routing.RANDOM
    tail = TailLatency(cost=cost, percentile=0.95, routing=routing)
    fleet = Cell(
        routing=routing,
        replicas=replicas,
        fixed_share=cost.fixed_s / tail.full_s,
        max_batch=max_batch,
        cv=0.0,
        utilization=tail.capacity_rps(target_s, replicas) / tail.full_rps,
    )
    assert percentiles(fleet, 60_000, 1, [in_time])[0] * tail.full_s <= target_s
