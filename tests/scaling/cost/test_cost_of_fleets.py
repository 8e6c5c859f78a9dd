"""The cost of fleets of unequal replicas: speeds, deleted ones, and those that lie."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headroom.scaling import CostModel
from headroom.scaling.cost.claims import Claim
from headroom.scaling.cost.cost_learning import CostLearner
from scaling.cost.observed_batches import SILENT, TRUE, Tick, fitted, noisy, ran, taught


def fleet(
    costs: dict[str, CostModel], ticks: int, *, load: float = 1.0, cv: float = 0.0
) -> list[Tick]:
    """Replicas under the same share of the load: the slower, the larger its batches."""
    random = np.random.default_rng(7)
    executed = []
    for _ in range(ticks):
        share = load * random.uniform(0.6, 1.4)
        tick = []
        for replica, cost in costs.items():
            size = min(8.0, max(1.0, 8 * share * cost.batch_s(8) / TRUE.batch_s(8)))
            mean_s = cost.batch_s(size) * (1 + cv * random.normal() / math.sqrt(20))
            tick.append(ran(20.0, size, mean_s, replica))
        executed.append(tick)
    return executed


def slower(factor: float) -> CostModel:
    return CostModel(fixed_s=factor * 0.150, per_item_s=factor * 0.060, max_batch=8)


@pytest.mark.parametrize("load", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("factor", [1.2, 1.5, 2.0])
@pytest.mark.parametrize("cv", [0.0, 0.3])
def test_line_with_different_accelerators_is_not_tilted(
    factor: float, load: float, cv: float
) -> None:
    costs = {"a": TRUE, "b": slower(factor), "c": TRUE, "d": slower(factor)}
    cost = fitted(taught(CostLearner(), SILENT, fleet(costs, 900, load=load, cv=cv)))
    assert cost.batch_s(8) == pytest.approx(0.63, rel=0.07)  # of two middle ones the faster
    assert cost.batch_s(1) == pytest.approx(0.21, rel=0.07)
    assert cost.cv == pytest.approx(cv, rel=0.1, abs=0.1)


@pytest.mark.parametrize("cv", [0.0, 0.3])
def test_size_that_changes_by_chance_is_no_variation(cv: float) -> None:
    """A fast model runs 200 batches a tick, and what a request adds is not known for long.

    Then the size falls once, because a replica was added.
    """
    cost, random = (
        CostModel(fixed_s=0.00995, per_item_s=0.00005, max_batch=64),
        np.random.default_rng(3),
    )
    ticks = []
    for number in range(60):
        usual = 5.1 if number < 30 else 3.1
        sizes = usual * (1.0 + 0.02 * random.standard_normal(3))
        noise = 1.0 + cv / math.sqrt(200.0) * random.standard_normal(3)
        ticks.append(
            [
                ran(200.0, size, cost.batch_s(size) * factor, replica)
                for replica, size, factor in zip("abc", sizes.tolist(), noise.tolist(), strict=True)
            ]
        )
    learner = CostLearner()
    for count in (20, 10, 30):
        learner = taught(learner, Claim(max_batch=64), ticks[:count])
        assert fitted(learner, Claim(max_batch=64)).cv == pytest.approx(cv, rel=0.25, abs=0.03)
        ticks = ticks[count:]


def test_cost_that_no_line_fits_is_no_variation() -> None:
    # Padded to powers of two, as compiled kernels are: 3 requests take as long as 4.
    steps = {size: 0.150 + 0.060 * 2 ** math.ceil(math.log2(size)) for size in range(1, 9)}
    random = np.random.default_rng(8)
    ticks = [
        [ran(60.0, size, steps[size], replica) for replica, size in zip("ab", sizes, strict=True)]
        for sizes in np.repeat(random.integers(1, 9, (90, 2)), 10, axis=0).tolist()
    ]
    assert fitted(taught(CostLearner(), SILENT, ticks)).cv < 0.5


def test_deleted_replica_keeps_its_share_of_the_cost_but_no_speed() -> None:
    learner = taught(CostLearner(), SILENT, fleet({"a": TRUE, "b": slower(1.5)}, 300))
    left = learner.only({"a"})
    assert set(left.speeds.sums) == set(left.variation.latest) == {"a"}
    assert fitted(left) == fitted(learner)
    assert left.only({"a", "c"}) is left
    assert learner.speeds.factors == pytest.approx({"a": 1.0, "b": 1.5}, rel=0.02)
    assert left.speeds.factors.keys() == left.speeds.recent.keys() == {"a"}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("cv", [0.3, 1.0])
def test_speed_factors_within_chance_are_one(cv: float, seed: int) -> None:
    alone = [noisy(cv, 600, seed=10 * seed + number) for number in range(4)]
    learner = CostLearner()
    for ticks in zip(*alone, strict=True):
        executed = [one._replace(replica=name) for name, (one,) in zip("abcd", ticks, strict=True)]
        learner = learner.observe(executed, 2.0, learner.fit(SILENT))
        assert learner.speeds.factors == {}


def test_replica_that_claims_a_thousandth_of_the_time_teaches_no_cost_afterwards() -> None:
    """Its factor is no measure of its speed: what it reports later is not divided by it."""
    claim = Claim(max_batch=8, cost=TRUE)
    lies = [[ran(1.0, 1.0, 0.00021), ran(1.0, 1.0, 0.21, "b"), ran(1.0, 1.0, 0.21, "c")]] * 12
    truth = [[ran(1.0, 1.0, 0.21), ran(1.0, 1.0, 0.21, "b"), ran(1.0, 1.0, 0.21, "c")]] * 30
    learner = taught(CostLearner(), claim, lies)
    assert learner.speeds.incredible == {"a"}
    assert learner.speeds.pooled(["a", "b", "c"]) == 1.0
    for tick in truth:
        learner = taught(learner, claim, [tick])
        assert fitted(learner, claim).batch_s(1) == pytest.approx(0.21, rel=0.15)
