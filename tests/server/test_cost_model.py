"""What a batch costs: learnt at warm-up, followed online."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom_server.cost_model import CostModel

SIZES = range(1, 9)


def warm(fixed_s: float = 0.006, per_item_s: float = 0.0005) -> CostModel:
    return CostModel.from_warm_up([(b, fixed_s + per_item_s * b) for b in SIZES])


def follow(model: CostModel, sizes: list[int], fixed_s: float, per_item_s: float) -> CostModel:
    for size in sizes:
        model = model.observe(size, fixed_s + per_item_s * size)
    return model


@given(st.floats(1e-4, 1.0), st.floats(0.0, 0.5))
def test_warm_up_finds_the_line(fixed_s: float, per_item_s: float) -> None:
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
def test_a_change_of_speed_is_followed(
    sizes: list[int], fixed_s: float, per_item_s: float, expected_full_s: float
) -> None:
    model = follow(warm(), sizes, fixed_s, per_item_s)
    assert model.batch_s(8) == pytest.approx(expected_full_s, rel=0.05)


@given(st.lists(st.tuples(st.integers(1, 8), st.floats(1e-6, 10.0)), max_size=60))
def test_no_history_gives_a_negative_cost(history: list[tuple[int, float]]) -> None:
    model = warm()
    for size, seconds in history:
        model = model.observe(size, seconds)
    assert model.fixed_s >= 0.0
    assert model.per_item_s >= 0.0
    assert model.batch_s(1) > 0.0


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="finite seconds above 0"):
        warm().observe(1, seconds)


def test_a_model_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one timed batch"):
        CostModel.from_warm_up([])


def test_one_size_alone_is_a_line_through_the_origin() -> None:
    assert CostModel.from_warm_up([(1, 0.01), (1, 0.03)]).batch_s(1) == pytest.approx(0.02)
