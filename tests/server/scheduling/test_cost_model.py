"""Cost of a batch: learned at warm-up, updated online."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom_server.scheduling.cost_model import CostModel

SIZES = range(1, 9)


def warm(fixed_s: float = 0.006, per_item_s: float = 0.0005) -> CostModel:
    return CostModel.from_warm_up([(b, fixed_s + per_item_s * b) for b in SIZES])


def follow(model: CostModel, sizes: list[int], fixed_s: float, per_item_s: float) -> CostModel:
    for size in sizes:
        model = model.observe(size, fixed_s + per_item_s * size)
    return model


@given(st.floats(1e-4, 1.0), st.floats(0.0, 0.5))
def test_warm_up_times_give_the_line(fixed_s: float, per_item_s: float) -> None:
    model = warm(fixed_s, per_item_s)
    assert model.fixed_s == pytest.approx(fixed_s, rel=1e-3, abs=1e-6)
    assert model.per_item_s == pytest.approx(per_item_s, rel=1e-3, abs=1e-6)


def test_throughput_is_that_of_full_batches() -> None:
    assert warm().throughput(8) == pytest.approx(800.0)


@pytest.mark.parametrize(
    ("sizes", "fixed_s", "per_item_s", "expected_full_s"),
    [
        pytest.param([1] * 300, 0.012, 0.001, 0.020, id="twice as slow, seen at one size only"),
        pytest.param([8] * 300, 0.003, 0.00025, 0.005, id="twice as fast, seen full only"),
        pytest.param([1, 4, 8] * 300, 0.001, 0.002, 0.017, id="another shape, all sizes seen"),
        pytest.param([3] * 500, 0.006, 0.0005, 0.010, id="nothing changes: nothing drifts"),
    ],
)
def test_cost_follows_a_change_of_speed(
    sizes: list[int], fixed_s: float, per_item_s: float, expected_full_s: float
) -> None:
    model = follow(warm(), sizes, fixed_s, per_item_s)
    assert model.batch_s(8) == pytest.approx(expected_full_s, rel=0.05)


@given(st.lists(st.tuples(st.integers(1, 8), st.floats(1e-6, 10.0)), max_size=60))
def test_cost_is_never_negative(history: list[tuple[int, float]]) -> None:
    model = warm()
    for size, seconds in history:
        model = model.observe(size, seconds)
    assert model.fixed_s >= 0.0
    assert model.per_item_s >= 0.0
    assert model.batch_s(1) > 0.0


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_invalid_batch_time_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="finite seconds above 0"):
        warm().observe(1, seconds)


def test_cost_model_without_times_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one timed batch"):
        CostModel.from_warm_up([])


def test_single_batch_size_gives_a_line_through_the_origin() -> None:
    assert CostModel.from_warm_up([(1, 0.01), (1, 0.03)]).batch_s(1) == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("slowness", "batches"),
    [
        pytest.param(2.0, 3, id="twice as slow: 3 x (ln 2 - 0.05) > 1.5"),
        pytest.param(0.5, 3, id="twice as fast"),
        pytest.param(1.25, 16, id="a quarter slower: the wider residuals widen the slack"),
    ],
)
def test_change_of_speed_is_detected_within_a_few_batches(slowness: float, batches: int) -> None:
    before = follow(warm(), [8] * 200, 0.006, 0.0005)
    after = follow(before, [8] * batches, 0.006 * slowness, 0.0005 * slowness)
    assert after.batch_s(8) == pytest.approx(0.010 * slowness, rel=0.01)
    assert after.batch_s(1) == pytest.approx(0.0065 * slowness, rel=0.01)


def test_single_outlier_is_no_change() -> None:
    before = follow(warm(), [8] * 200, 0.006, 0.0005)
    assert before.observe(8, 1.0).batch_s(8) == pytest.approx(0.010, rel=0.02)


def test_slowdown_at_one_length_scales_all_lengths() -> None:
    model = CostModel.from_warm_up(
        (b, 0.01 * length * b, length) for length in (1, 4) for b in SIZES
    )
    for _ in range(3):
        model = model.observe(8, 0.16, 1)
    assert model.batch_s(8, 1) == pytest.approx(0.16, rel=0.01)
    assert model.batch_s(8, 4) == pytest.approx(0.64, rel=0.01)
    assert model.batch_s(8, 2) == model.batch_s(8, 4), "never timed: as the next longer one"
    assert model.batch_s(8, 9) == model.batch_s(8, 4), "longer than all timed: as the longest"


def test_throughput_follows_the_mix_of_lengths() -> None:
    # t(8) = 0.08 s at length 1, 0.32 s at length 4; of 4 items lately, 3 were short
    model = CostModel.from_warm_up(
        (b, 0.01 * length * b, length) for length in (1, 4) for b in SIZES
    )
    for _ in range(1000):
        for length in (1, 1, 1, 4):
            model = model.observe(8, 0.08 * length, length)
    assert model.throughput(8) == pytest.approx(8 / (0.75 * 0.08 + 0.25 * 0.32), rel=0.02)


def test_tail_is_mean_plus_two_mean_deviations() -> None:
    model = warm()
    for number in range(4000):
        model = model.observe(8, 0.010 * (1.3 if number % 10 == 0 else 1.0))
    # fitted to the mean: nine in ten 3 % faster, one 26 % slower; 2 x 0.052
    assert model.tail == pytest.approx(0.105, abs=0.04)
