"""Batches that replicas ran, for tests of the learned cost."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from headroom.scaling import CostModel
from headroom.scaling.cost.claims import Claim
from headroom.scaling.cost.cost_learning import CostLearner
from headroom.scaling.windows.window_totals import BatchStats

TRUE = CostModel(fixed_s=0.150, per_item_s=0.060, max_batch=8)
"""A batch of one takes 0.21 s, a full one 0.63 s."""
SILENT = Claim(max_batch=8)
"""The server says how large a batch may be, and not what it costs."""
Tick = list[BatchStats]


def ran(batches: float, size: float, mean_s: float, replica: str = "a") -> BatchStats:
    return BatchStats(replica, batches, size, mean_s)


def taught(learner: CostLearner, claim: Claim, ticks: Iterable[Tick]) -> CostLearner:
    """Let ticks of 2 s pass as the decision does: each is compared with the fit of the last."""
    for executed in ticks:
        learner = learner.observe(executed, 2.0, learner.fit(claim))
    return learner


def fitted(learner: CostLearner, claim: Claim = SILENT) -> CostModel:
    cost = learner.fit(claim)
    assert cost is not None
    return cost


def steady(cost: CostModel, ticks: int, *, sizes: tuple[int, ...] = (1, 2, 4, 8)) -> list[Tick]:
    """Five batches of each of the sizes in turn, without noise."""
    return [[ran(5.0, float(sizes[n % len(sizes)]), cost.batch_s(sizes[n % len(sizes)]))]
            for n in range(ticks)]  # fmt: skip


def noisy(cv: float, ticks: int, *, seed: int, sizes: tuple[int, ...] = (1, 2, 4, 8)) -> list[Tick]:
    """Twenty lognormal executions of sizes at random in each interval."""
    random, variance = np.random.default_rng(seed), math.log1p(cv**2)
    size = random.choice(sizes, (ticks, 20))
    factor = random.lognormal(-variance / 2, math.sqrt(variance), (ticks, 20))
    took_s = (TRUE.fixed_s + TRUE.per_item_s * size) * factor
    return [
        [ran(20.0, float(mean), float(mean_s))]
        for mean, mean_s in zip(size.mean(axis=1), took_s.mean(axis=1), strict=True)
    ]
