"""A batch cost from a measured sweep: from the server's counters, else from latencies by load."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from headroom.planner.errors import ImpossiblePlan, require
from headroom.planner.load_sweep import LoadStep, latency_of
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.values.observation import CostModel

SHARES = 9
"""Fixed shares tried between 0 and 1 when only latencies are known, and again as many
between the neighbours of the best."""
FITTED_PERCENTILES = (0.5, 0.9)


class CostSource(StrEnum):
    """Source of a cost."""

    BATCHES = "the server's batches during the sweep"
    WARM_UP = "the server's timings during warm-up"
    LATENCIES = "latencies by load"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCost:
    """A cost and where it comes from."""

    cost: CostModel
    source: CostSource


def cost_of(
    steps: Sequence[LoadStep], advertised: CostModel | None, max_batch: int | None
) -> MeasuredCost:
    """Fit a cost to the best data available.

    Batches of at least two mean sizes under load come first: they include the cost of serving
    besides the model. Then the server's timings of its warm-up, then latencies, which need the
    maximum batch size.

    Raises ImpossiblePlan where none of these is sufficient.
    """
    limit = advertised.max_batch if advertised else max_batch
    require(
        limit is not None,
        "the maximum batch size must be known",
        "none from the server or the command",
        "Give --max-batch; 1 is a server without batching",
    )
    assert limit is not None
    fitted = _by_batches(steps, limit)
    if fitted is not None:
        return MeasuredCost(cost=fitted, source=CostSource.BATCHES)
    if advertised is not None:
        return MeasuredCost(cost=advertised, source=CostSource.WARM_UP)
    return MeasuredCost(cost=_by_latencies(steps, limit), source=CostSource.LATENCIES)


def _by_batches(steps: Sequence[LoadStep], max_batch: int) -> CostModel | None:
    """Least squares over (mean size, mean seconds) per step; None where sizes hardly differ."""
    rows = [
        (one.batch_items / one.batches, one.batch_seconds / one.batches, one.batches)
        for one in steps
        if one.batches and one.batch_items and one.batch_seconds
    ]
    if len(rows) < 2:
        return None
    size, seconds, weight = np.array(rows).T
    if max_batch == 1:
        return CostModel(
            fixed_s=float(np.average(seconds, weights=weight)), per_item_s=0.0, max_batch=1
        )
    if size.max() - size.min() < 0.1 * max_batch:
        return None
    per_item_s, fixed_s = np.polyfit(size, seconds, 1, w=np.sqrt(weight))
    if per_item_s < 0:
        per_item_s, fixed_s = 0.0, float(np.average(seconds, weights=weight))
    if fixed_s < 0:
        fixed_s = 0.0
        per_item_s = float((weight * size * seconds).sum() / (weight * size * size).sum())
    return CostModel(fixed_s=float(fixed_s), per_item_s=float(per_item_s), max_batch=max_batch)


def _by_latencies(steps: Sequence[LoadStep], max_batch: int) -> CostModel:
    """Take the quietest median for t(1), and the fixed share whose model fits the other steps."""
    usable = [one for one in steps if math.isfinite(latency_of(one, FITTED_PERCENTILES[-1]))]
    if not usable:
        raise ImpossiblePlan(
            "a cost needs answers within the timeout; got misses at every rate. "
            "Increase the target, or measure an idle server."
        )
    quiet = min(usable, key=lambda one: one.rate_rps)
    alone_s = latency_of(quiet, 0.5)
    if max_batch == 1:
        return _with_share(alone_s, 1.0, 1)
    width = 1.0 / (SHARES - 1)
    coarse = _best_share(alone_s, max_batch, usable, 0.0, 1.0)
    fine = _best_share(
        alone_s, max_batch, usable, max(0.0, coarse - width), min(1.0, coarse + width)
    )
    return _with_share(alone_s, fine, max_batch)


def _best_share(
    alone_s: float, max_batch: int, steps: Sequence[LoadStep], low: float, high: float
) -> float:
    shares = [float(share) for share in np.linspace(low, high, SHARES)]
    return min(shares, key=lambda share: _misfit(_with_share(alone_s, share, max_batch), steps))


def _with_share(alone_s: float, share: float, max_batch: int) -> CostModel:
    """Return the cost with t(1) = alone_s whose fixed part is `share` of a full batch."""
    full_s = alone_s / (share + (1.0 - share) / max_batch)
    return CostModel(
        fixed_s=share * full_s, per_item_s=(1.0 - share) * full_s / max_batch, max_batch=max_batch
    )


def _misfit(cost: CostModel, steps: Sequence[LoadStep]) -> float:
    """Sum of squared logarithms of modelled over measured; bounded, as overload is no latency."""
    total = 0.0
    for percentile in FITTED_PERCENTILES:
        tail = TailLatency(cost=cost, percentile=percentile)
        for one in steps:
            ratio = tail.latency_s(one.rate_rps, 1) / latency_of(one, percentile)
            total += min(9.0, math.log(ratio) ** 2) if math.isfinite(ratio) else 9.0
    return total
