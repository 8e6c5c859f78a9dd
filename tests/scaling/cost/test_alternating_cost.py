"""A neighbour or heat slows all executions again and again: what a batch saves stays known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headroom.scaling import CostModel
from headroom.scaling.cost.claims import Claim
from headroom.scaling.cost.cost_learning import CostLearner
from headroom.scaling.cost.sudden_change import changes_suddenly
from headroom.scaling.windows.window_totals import BatchStats
from scaling.cost.observed_batches import fitted, ran

FAST = CostModel(fixed_s=0.020, per_item_s=0.0015, max_batch=16)
SLOWER = 2.0
CLAIM = Claim(max_batch=16)
TICK_S = 2.0


def size_at(rate_rps: float, slower: float) -> float:
    """The mean batch of a replica that takes what waits whenever it is free."""
    fixed_s, per_item_s = slower * FAST.fixed_s, slower * FAST.per_item_s
    left = 1.0 - rate_rps * per_item_s
    return 16.0 if left <= 0.0 else min(16.0, max(1.0, rate_rps * fixed_s / left))


def tick_of(
    rate_rps: float, slow_share: float, cv: float, chance: np.random.Generator
) -> list[BatchStats]:
    """Return the executions of five replicas in a tick of which a share is slow, as means."""
    executed = []
    variance = math.log1p(cv * cv)
    for replica in "abcde":
        batches = items = seconds = 0.0
        for slower, share in ((1.0, 1.0 - slow_share), (SLOWER, slow_share)):
            if share <= 0.0:
                continue
            size = min(16.0, size_at(rate_rps, slower) * chance.uniform(0.95, 1.05))
            mean_s = slower * FAST.batch_s(size)
            number = max(1, round(share * TICK_S / mean_s))
            mean_s *= chance.lognormal(-variance / 2, math.sqrt(variance), number).mean()
            batches, items = batches + number, items + number * size
            seconds += number * mean_s
        executed.append(ran(batches, items / batches, seconds / batches, replica))
    return executed


def alternated(cv: float, *, cycles: int, fast: int, slow: int) -> list[tuple[float, float]]:
    """Return the learned throughput of full batches at the end of each (fast, slow) phase."""
    chance, learner, known = np.random.default_rng(7), CostLearner(), []

    def pass_(rate_rps: float, share: float, ticks: int) -> None:
        nonlocal learner
        for _ in range(ticks):
            executed = tick_of(rate_rps, share, cv, chance)
            learner = learner.observe(executed, TICK_S, learner.fit(CLAIM))

    pass_(190.0, 0.0, 200)
    for _ in range(cycles):
        pass_(120.0, 0.4, 1)
        pass_(120.0, 1.0, slow)
        slowed_rps = fitted(learner, CLAIM).full_batch_rps
        pass_(120.0, 0.6, 1)
        pass_(120.0, 0.0, fast)
        known.append((fitted(learner, CLAIM).full_batch_rps, slowed_rps))
    return known


@pytest.mark.parametrize(("fast", "slow"), [(30, 10), (15, 15), (120, 60)])
@pytest.mark.parametrize("cv", [0.0, 0.2])
def test_cost_that_alternates_is_known_in_both_phases(cv: float, fast: int, slow: int) -> None:
    for fast_rps, slow_rps in alternated(cv, cycles=10, fast=fast, slow=slow):
        assert fast_rps == pytest.approx(FAST.full_batch_rps, rel=0.2)
        assert slow_rps == pytest.approx(FAST.full_batch_rps / SLOWER, rel=0.2)


HUNDRED = {5: (100.0, 600.0, 3600.0, 2.8, 16.8)}
"""A hundred batches of 6 that took 28 ms each; the bin holds more than 5 to 7.6."""


@pytest.mark.parametrize(
    ("size", "mean_s", "batches", "cv", "found"),
    [
        (6.0, 0.033, 100.0, 0.0, True),
        (6.0, 0.032, 100.0, 0.0, False),  # within 15 %
        (7.5, 0.035, 100.0, 0.0, False),  # a request may add its whole share: 28 x 7.5 / 6
        (7.5, 0.041, 100.0, 0.0, True),
        (7.5, 0.0235, 100.0, 0.0, True),  # or nothing
        (5.2, 0.0235, 100.0, 0.0, False),
        (9.0, 0.056, 100.0, 0.0, False),  # never seen
        (6.0, 0.056, 2.0, 0.0, False),  # ten batches, against a hundred: evidence of nine
        (6.0, 0.056, 100.0, 1.0, True),
        (6.0, 0.033, 100.0, 1.0, False),  # chance
        (6.0, 0.084, 19.0, 1.0, False),  # 95 executions: too few for what varies by its mean
    ],
)
def test_same_sizes_that_take_longer_or_shorter_are_a_sudden_change(
    size: float, mean_s: float, batches: float, cv: float, found: bool
) -> None:
    executed = [BatchStats(one, batches, size, mean_s) for one in "abcde"]
    assert changes_suddenly(HUNDRED, executed, {}, cv) is found


def test_change_of_one_of_three_replicas_is_none_of_the_cost() -> None:
    executed = [BatchStats(one, 100.0, 6.0, 0.028) for one in "ab"]
    assert not changes_suddenly(HUNDRED, [*executed, ran(100.0, 6.0, 0.056, "c")], {}, 0.0)
    slow = [ran(100.0, 6.0, 0.056, "a")]
    assert changes_suddenly(HUNDRED, slow, {}, 0.0)
    assert not changes_suddenly(HUNDRED, slow, {"a": 2.0}, 0.0)
