"""The learned cost of a batch and of a cold start in status."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field

from headroom.api.service_status.status_durations import seconds_of
from headroom.api.service_status.status_types import Count, Word
from headroom.api.values import Value
from headroom.scaling.values.observation import CostModel


class ModelStatus(Value):
    """Learned execution time of a batch: fixedCost + perItemCost x size, up to maxBatch."""

    fixed_cost: Word
    """Time per batch, independent of its size."""
    per_item_cost: Word
    """Additional time per request in the batch."""
    max_batch: Count
    """Maximum batch size."""
    slots: Annotated[int, Field(ge=1)] | None = None
    """Batches that one replica computes at the same time."""

    @property
    def cost(self) -> CostModel | None:
        """The cost to the three digits shown; None if it cannot be read."""
        fixed_s, per_item_s = seconds_of(self.fixed_cost), seconds_of(self.per_item_cost)
        if fixed_s is None or per_item_s is None or self.max_batch == 0:
            return None
        cost = CostModel(
            fixed_s=fixed_s,
            per_item_s=per_item_s,
            max_batch=self.max_batch,
            slots=self.slots or 1,
        )
        return cost if 0 < cost.batch_s(cost.max_batch) < math.inf else None


class ColdStartStatus(Value):
    """Time that a new replica takes from node assignment to ready."""

    p90: Word
    """90th percentile of the measured cold starts."""
    estimated_misses_per_cold_start: float | None = None
    """Requests that miss the target each time the service starts from zero, estimated from the last
    arrival rate. Reported in Gateway mode, also where minReplicas is above 0."""
