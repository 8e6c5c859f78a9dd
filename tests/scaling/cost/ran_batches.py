"""Batches that replicas ran at a known cost, for tests."""

from __future__ import annotations

from headroom.scaling import CostModel
from headroom.scaling.cost.cost_learning import CostLearner
from headroom.scaling.cost.execution_variation import ExecutionVariation
from headroom.scaling.windows.window_totals import BatchStats

TRUE = CostModel(fixed_s=0.150, per_item_s=0.060, max_batch=8)
"""A batch of one takes 0.21 s."""
HUNDRED = {0: (100.0, 100.0, 100.0, 21.0, 21.0)}
"""A hundred batches of one, as TRUE says."""
KNOWN = CostLearner(bins=HUNDRED, variation=ExecutionVariation.of(0.0, 10.0))
Pair = tuple[float, float, float]
"""Batches, their mean size, their mean seconds."""


def ran(*pairs: Pair, replica: str = "a") -> list[BatchStats]:
    return [BatchStats(replica, *pair) for pair in pairs]
