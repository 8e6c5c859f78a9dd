"""Learning the cost: noise, priors, outliers, changes, checkpoints."""

from __future__ import annotations

import pytest

from headroom.scaling import CostModel
from headroom.scaling.cost.claims import Claim
from headroom.scaling.cost.cost_learning import CostLearner
from scaling.cost.observed_batches import SILENT, TRUE, fitted, noisy, ran, steady, taught


@pytest.mark.parametrize("claim", [SILENT, Claim(max_batch=8, cost=TRUE)], ids=["silent", "claims"])
@pytest.mark.parametrize("cv", [0.0, 0.5])
def test_cost_after_an_hour_of_small_batches_keeps_the_full_one(claim: Claim, cv: float) -> None:
    learner = taught(CostLearner(), claim, noisy(cv, 300, seed=1))
    assert fitted(learner, claim).batch_s(8) == pytest.approx(0.63, rel=0.05)
    spare = taught(learner, claim, noisy(cv, 1800, seed=2, sizes=(1,)))
    assert fitted(spare, claim).batch_s(8) == pytest.approx(0.63, rel=0.05)
    assert fitted(spare, claim).batch_s(1) == pytest.approx(0.21, rel=0.05)


def test_bins_fade_only_when_refreshed() -> None:
    learner = CostLearner().observe([ran(10, 1, 0.2), ran(10, 8, 0.6, "b")], 2.0)
    learner = learner.observe([ran(10, 1, 0.2)], 1800.0)  # a half-life
    by_batches = sorted(sums[0] for sums in learner.bins.values())
    assert by_batches == [10.0, 15.0]
    assert learner.observe([], 1e6) == learner


@pytest.mark.parametrize("claim", [None, SILENT], ids=["no claim", "only the largest batch"])
def test_cost_before_the_first_batch_is_unknown_unless_reported(
    claim: Claim | None,
) -> None:
    assert CostLearner().fit(claim) is None
    assert CostLearner().observe([], 2.0).fit(claim) is None


def test_cost_without_the_largest_batch_is_unknown() -> None:
    assert CostLearner().observe([ran(10, 1, 0.21)], 2.0).fit(None) is None


def test_cost_without_batches_is_the_reported_one() -> None:
    claimed = fitted(CostLearner(), Claim(max_batch=8, cost=TRUE, slots=2))
    assert (claimed.fixed_s, claimed.per_item_s) == pytest.approx((0.150, 0.060))
    assert (claimed.max_batch, claimed.slots, claimed.cv) == (8, 2, 0.0)


def test_weak_prior_loses_weight_as_larger_batches_are_observed() -> None:
    learner = CostLearner().observe([ran(10, 1, 0.21)], 2.0)
    # Batches of one alone: a full batch of 8 might take 8 x 0.21 s.
    assert fitted(learner).batch_s(8) == pytest.approx(1.68)
    errors = []
    for size in (2, 4, 8):
        learner = learner.observe([ran(10, size, TRUE.batch_s(size))], 2.0)
        errors.append(fitted(learner).batch_s(8) / 0.63 - 1)
    assert 0 < errors[2] < errors[1] < errors[0] < 1.68 / 0.63 - 1
    assert errors[2] < 0.02


@pytest.mark.parametrize("largest", [32, 256, 512])
def test_doubt_about_far_larger_batches_fades_like_that_about_near_ones(largest: int) -> None:
    true = CostModel(fixed_s=2.7, per_item_s=0.03, max_batch=largest)
    claim, sizes = Claim(max_batch=largest), (7, 9, 11)
    learner = taught(CostLearner(), claim, steady(true, 60, sizes=sizes))
    assert fitted(learner, claim).batch_s(largest) <= 2.0 * true.batch_s(largest)


def test_cost_ignores_a_hang() -> None:
    learner = taught(CostLearner(), SILENT, steady(TRUE, 50))
    expected = fitted(learner)
    usual = taught(learner, SILENT, [[ran(1, 8, 19.0 * expected.batch_s(8))]])
    assert fitted(usual).batch_s(8) > 1.05 * expected.batch_s(8)
    assert taught(learner, SILENT, [[ran(1, 8, 21.0 * expected.batch_s(8))]]) == learner
    assert taught(learner, SILENT, [[ran(1, 1, 60.0)]]) == learner


@pytest.mark.parametrize("factor", [2.0, 3.0])
@pytest.mark.parametrize("sizes", [(1, 2, 4, 8), (1, 2), (1,)], ids=["all", "small", "ones"])
def test_cost_change_is_learned_within_30_s_for_all_sizes(
    factor: float, sizes: tuple[int, ...]
) -> None:
    new = CostModel(fixed_s=factor * 0.150, per_item_s=factor * 0.060, max_batch=8)
    learner = taught(CostLearner(), SILENT, steady(TRUE, 1800))
    learner = taught(learner, SILENT, steady(new, 15, sizes=sizes))
    for size in (1, 2, 4, 8):
        assert fitted(learner).batch_s(size) == pytest.approx(new.batch_s(size), rel=0.06)


def test_cost_change_of_full_batches_alone_is_learned_for_them() -> None:
    new = CostModel(fixed_s=0.300, per_item_s=0.120, max_batch=8)
    learner = taught(CostLearner(), SILENT, steady(TRUE, 1800))
    learner = taught(learner, SILENT, steady(new, 15, sizes=(8,)))
    assert fitted(learner).batch_s(8) == pytest.approx(1.26, rel=0.2)
    learner = taught(learner, SILENT, steady(new, 30, sizes=(8,)))
    assert fitted(learner).batch_s(8) == pytest.approx(1.26, rel=0.1)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_cost_after_a_small_change_keeps_the_past(factor: float) -> None:
    new = CostModel(fixed_s=factor * 0.150, per_item_s=factor * 0.060, max_batch=8)
    learner = taught(CostLearner(), SILENT, steady(TRUE, 1800))
    seen = sum(sums[0] for sums in learner.bins.values())
    learner = taught(learner, SILENT, steady(new, 60))
    assert sum(sums[0] for sums in learner.bins.values()) > seen


@pytest.mark.parametrize("seed", range(3))
def test_noise_alone_is_no_cost_change(seed: int) -> None:
    learner = taught(CostLearner(), SILENT, noisy(1.0, 120, seed=seed))
    for executed in noisy(1.0, 1800, seed=100 + seed):
        seen = sum(sums[0] for sums in learner.bins.values())
        learner = learner.observe(executed, 2.0, learner.fit(SILENT))
        assert sum(sums[0] for sums in learner.bins.values()) > 0.5 * seen
    assert fitted(learner).batch_s(8) == pytest.approx(0.63, rel=0.1)


@pytest.mark.parametrize("cv", [0.1, 0.3, 0.6, 1.0])
def test_variation_from_means_of_twenty_is_that_of_one_execution(cv: float) -> None:
    learner = taught(CostLearner(), SILENT, noisy(cv, 1800, seed=3))
    assert fitted(learner).cv == pytest.approx(cv, rel=0.1)


def test_variation_before_ten_differences_is_unknown() -> None:
    learner = CostLearner().observe([ran(10, 1, 0.21)], 2.0)  # before, nothing was expected
    intervals = noisy(1.0, 20, seed=4)
    for executed in intervals[:19]:
        learner = learner.observe(executed, 0.0, TRUE)
    assert fitted(learner).cv == 0.0
    assert fitted(learner.observe(intervals[19], 0.0, TRUE)).cv > 0.3
    assert fitted(taught(CostLearner(), SILENT, steady(TRUE, 100))).cv == 0.0


@pytest.mark.parametrize("cv", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("sizes", [(1, 2, 4, 8), (8,)], ids=["all", "full"])
@pytest.mark.parametrize("seed", range(3))
def test_cost_change_amid_noise_is_learned_within_30_s(
    cv: float, sizes: tuple[int, ...], seed: int
) -> None:
    learner = taught(CostLearner(), SILENT, noisy(cv, 900, seed=seed))
    doubled = [
        [one._replace(mean_s=2.0 * one.mean_s) for one in executed]
        for executed in noisy(cv, 15, seed=50 + seed, sizes=sizes)
    ]
    learner = taught(learner, SILENT, doubled)
    assert fitted(learner).batch_s(8) == pytest.approx(1.26, rel=0.15)


@pytest.mark.parametrize("seed", range(5))
def test_noise_of_the_first_minutes_is_no_cost_change(seed: int) -> None:
    learner = CostLearner()
    for executed in noisy(1.0, 60, seed=seed):
        seen = sum(sums[0] for sums in learner.bins.values())
        learner = learner.observe(executed, 2.0, learner.fit(SILENT))
        assert sum(sums[0] for sums in learner.bins.values()) > 0.5 * seen


@pytest.mark.parametrize("pair", [(10.0, 2.0, 0.0), (10.0, 0.0, 0.2)], ids=["no time", "no items"])
def test_counters_without_change_are_no_batches(pair: tuple[float, float, float]) -> None:
    assert CostLearner().observe([ran(*pair)], 2.0) == CostLearner()
