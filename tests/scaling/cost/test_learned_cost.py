"""The learned cost by hand: small sums with known results."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.scaling import CostModel
from headroom.scaling.cost.claims import Claim
from headroom.scaling.cost.cost_learning import CostLearner
from headroom.scaling.cost.execution_variation import ExecutionVariation
from headroom.scaling.cost.replica_speeds import ReplicaSpeeds
from scaling.cost.ran_batches import HUNDRED, KNOWN, TRUE, Pair, ran


def fitted(claim: Claim, *pairs: Pair) -> CostModel:
    cost = CostLearner().observe(ran(*pairs), 0.0).fit(claim)
    assert cost is not None
    return cost


@pytest.mark.parametrize(
    ("max_batch", "pairs", "fixed_s", "per_item_s"),
    [
        # one size of one request: flat, and no full batch to doubt
        (1, [(10.0, 1.0, 0.21)], 0.21, 0.0),
        # two sizes, and a tenth of a doubted batch of 2 that takes 2 x 4.8 / 30 = 0.32 s:
        # (2.7 + 0.032) / 10.1 = 0.270495 at 2, less 0.21 at 1
        (2, [(10.0, 1.0, 0.21), (10.0, 2.0, 0.27)], 0.149505, 0.060495),
        # 8 x 8.4 / 90 = 0.74667 s doubted: (6.3 + 0.074667) / 10.1 = 0.631155 at 8
        (8, [(10.0, 1.0, 0.21), (10.0, 8.0, 0.63)], 0.149835, 0.060165),
        # steeper than through the origin: 646.76 products over 656.4 sizes squared
        (8, [(10.0, 1.0, 0.1), (10.0, 8.0, 8.0)], 0.0, 0.985314),
        (8, [(10.0, 1.0, 0.1), (10.0, 8.0, 1.6)], 0.0, 0.198368),  # 130.20889 over 656.4
        # falling: flat at 15.13333 s over 20.1 batches
        (8, [(10.0, 1.0, 1.0), (10.0, 8.0, 0.5)], 0.752902, 0.0),
    ],
    ids=["one size", "two sizes", "a doubt", "through the origin", "just so", "flat"],
)
def test_line_without_a_reported_cost(
    max_batch: int, pairs: list[Pair], fixed_s: float, per_item_s: float
) -> None:
    cost = fitted(Claim(max_batch=max_batch), *pairs)
    assert (cost.fixed_s, cost.per_item_s) == pytest.approx((fixed_s, per_item_s), abs=1e-6)


@pytest.mark.parametrize(
    ("claimed", "one_s", "full_s"),
    [
        # 1.5 times too fast, 60 batches seen: scaled by 1 + 60 / 80 x 0.5 = 1.375, to 0.275 s and
        # 1.2375 s; of batches of one 60 x 0.3 s and 20 x 0.275 s over 80 are 0.29375 s
        ((0.1, 0.1), 0.29375, 1.2375),
        # nothing claimed is not scaled: 60 x 0.3 s over 80 at 1, nothing at 8, which falls: flat
        ((0.0, 0.0), 0.18, 0.18),
    ],
)
def test_wrong_reported_cost_is_scaled_for_other_sizes(
    claimed: tuple[float, float], one_s: float, full_s: float
) -> None:
    cost = CostModel(fixed_s=claimed[0], per_item_s=claimed[1], max_batch=8)
    learned = fitted(Claim(max_batch=8, cost=cost), (60.0, 1.0, 0.3))
    assert (learned.batch_s(1), learned.batch_s(8)) == pytest.approx((one_s, full_s))


@pytest.mark.parametrize(
    ("size", "number"),
    [(0.5, 0), (1.0, 0), (1.2, 1), (1.6, 2), (2.0, 2), (2.3, 3), (4.0, 4), (8.0, 6)],
)
def test_bin_holds_sizes_within_a_factor_of_1_5(size: float, number: int) -> None:
    assert list(CostLearner().observe(ran((1.0, size, 0.2)), 2.0).bins) == [number]


@pytest.mark.parametrize(
    ("batches", "cv", "factor", "surprises"),
    [
        (100.0, 1.0, 1.45, False),  # a mean of 100 is within 1 +- 5 / 10
        (100.0, 1.0, 1.55, True),
        (100.0, 1.0, 0.55, False),
        (100.0, 1.0, 0.45, True),
        (1e6, 0.0, 1.14, False),  # beyond chance, and too little to throw the past away
        (1e6, 0.0, 1.16, True),
        (1e6, 0.0, 0.88, False),
        (1e6, 0.0, 0.86, True),
        (9.0, 0.0, 3.0, False),  # fewer than ten say nothing
        (10.0, 0.0, 3.0, True),
    ],
)
def test_difference_beyond_chance_is_a_cost_change(
    batches: float, cv: float, factor: float, surprises: bool
) -> None:
    expected = CostModel(fixed_s=0.15, per_item_s=0.06, max_batch=8, cv=cv)
    learned = KNOWN.observe(ran((batches, 1.0, factor * 0.21)), 0.0, expected)
    assert (learned.speeds.recent == {}) is surprises
    assert (learned.bins[0][0] < 100.0 + batches) is surprises


@pytest.mark.parametrize(("differences", "surprises"), [(9.0, False), (10.0, True)])
def test_chance_before_ten_differences_assumes_cv_1(differences: float, surprises: bool) -> None:
    before = CostLearner(bins=HUNDRED, variation=ExecutionVariation.of(0.0, differences))
    learned = before.observe(ran((100.0, 1.0, 1.4 * 0.21)), 0.0, TRUE)
    assert (learned.speeds.recent == {}) is surprises


def test_cost_change_scales_the_past_and_reduces_its_weight() -> None:
    learned = KNOWN.observe(ran((100.0, 1.0, 0.42)), 0.0, TRUE)
    # 2 % of 100 batches, at twice their 0.21 s: 0.84 s; then the hundred new ones
    assert learned.bins[0] == pytest.approx((102.0, 102.0, 102.0, 42.84, 42.84))
    assert learned.variation.differences == pytest.approx(10.0)  # the variation stays known
    assert learned.speeds.recent == {}


def test_cost_change_takes_its_ratio_from_the_latest_batches() -> None:
    before = replace(KNOWN, speeds=ReplicaSpeeds(recent={"a": (100.0, 21.0, 21.0)}))
    learned = before.observe(ran((100.0, 1.0, 0.42)), 0.0, TRUE)  # recent: 1.5 times, latest: twice
    assert learned.bins[0] == pytest.approx((102.0, 102.0, 102.0, 42.84, 42.84))


def test_recent_batches_have_a_half_life_of_20_s() -> None:
    before = CostLearner(speeds=ReplicaSpeeds(recent={"a": (40.0, 8.0, 8.4)}))
    learned = before.observe(ran((10.0, 1.0, 0.21)), 20.0, TRUE)
    assert learned.speeds.together() == pytest.approx((30.0, 6.1, 6.3))


@pytest.mark.parametrize(("factor", "counts"), [(19.9, True), (20.1, False)])
def test_interval_20_times_as_long_is_ignored(factor: float, counts: bool) -> None:
    learned = KNOWN.observe(ran((1.0, 1.0, factor * 0.21)), 2.0, TRUE)
    assert (learned.bins[0] != HUNDRED[0]) is counts
