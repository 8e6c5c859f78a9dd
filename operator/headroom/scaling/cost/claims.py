"""Reports of the servers about their batches: the largest size, and the cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median_low

from headroom.scaling.frozen import replace
from headroom.scaling.values.observation import CostModel, PodSample

ENOUGH_BATCHES, FAR_OFF = 3.0, 10.0
"""A reported cost that is ten times as high or low as that of the server's own batches is wrong.
Worked: three exponential executions take a tenth of the expected time once in 300 servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The cost and the limits that the servers report."""

    max_batch: int
    slots: int = 1
    cost: CostModel | None = None


def claim_of(samples: Iterable[PodSample]) -> Claim | None:
    """Return the limits and the cost that the servers report; None if none does.

    Of different reports the median counts, so that one replica alone changes neither: the smaller
    of two largest batches, and the mean of two costs, or the lower of two that are far apart. A
    cost that the server's own batches confirm has precedence over one without batches yet, and that
    one over one that they contradict.
    """
    reported: list[tuple[PodSample, CostModel]] = []
    largests: list[int] = []
    slots = 1
    for sample in samples:
        cost = sample.cost
        if cost is not None:
            reported.append((sample, cost))
            largests.append(cost.max_batch)
        elif sample.max_batch:
            largests.append(sample.max_batch)
        if sample.slots > slots:
            slots = sample.slots
    if not largests:
        return None
    return Claim(max_batch=median_low(largests), slots=slots, cost=_usual_cost(reported))


def _doubt(sample: PodSample, cost: CostModel) -> int:
    """Return 0 if the server's own batches took about as long as it reports, 2 if not, else 1."""
    if sample.batches < ENOUGH_BATCHES:
        return 1
    reported_s = sample.batches * cost.batch_s(sample.batch_items / sample.batches)
    return 0 if reported_s / FAR_OFF <= sample.batch_seconds <= FAR_OFF * reported_s else 2


def _usual_cost(reported: Sequence[tuple[PodSample, CostModel]]) -> CostModel | None:
    if not reported:
        return None
    costs = [cost for _, cost in reported]
    if costs.count(costs[0]) == len(costs):
        return costs[0]
    by_doubt: tuple[list[CostModel], ...] = ([], [], [])
    for sample, cost in reported:
        by_doubt[_doubt(sample, cost)].append(cost)
    ordered = sorted(next(costs for costs in by_doubt if costs), key=_full_s)
    lower, upper = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    if _full_s(upper) >= FAR_OFF * _full_s(lower):
        return lower
    return replace(
        lower,
        fixed_s=(lower.fixed_s + upper.fixed_s) / 2.0,
        per_item_s=(lower.per_item_s + upper.per_item_s) / 2.0,
    )


def _full_s(cost: CostModel) -> float:
    return cost.batch_s(cost.max_batch)
