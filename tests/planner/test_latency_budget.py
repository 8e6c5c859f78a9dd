"""Stages in a row against a target."""

from __future__ import annotations

import pytest

from headroom.planner.errors import ImpossiblePlan
from headroom.planner.latency_budget import Stage, amdahl, budget

STAGES = [Stage(name="decode", latency_s=0.030), Stage(name="model", latency_s=0.070)]


def test_budget_names_bottleneck_and_gains_of_faster_stages() -> None:
    planned = budget(STAGES, 0.080)
    decode, model = planned.lines
    assert not planned.kept
    assert planned.bottleneck is model
    assert (decode.share, model.share) == pytest.approx((0.3, 0.7))
    assert (decode.allowance_s, model.allowance_s) == pytest.approx((0.024, 0.056))
    assert model.twice_as_fast_s == pytest.approx(0.065)
    assert model.best_s == pytest.approx(0.030)
    assert model.needed_speedup == pytest.approx(1.4)  # 70 ms into the 50 that decode leaves
    assert decode.needed_speedup == pytest.approx(3.0)
    assert model.percentile == pytest.approx(0.975)


def test_stage_too_small_for_target_needs_no_speedup() -> None:
    decode, model = budget(STAGES, 0.060).lines
    assert decode.needed_speedup is None
    assert model.needed_speedup == pytest.approx(70 / 30)


def test_budget_within_target_needs_no_speedup() -> None:
    planned = budget(STAGES, 0.100)
    assert planned.kept
    assert [line.needed_speedup for line in planned.lines] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("share", "factor", "said"),
    [(1.1, 2.0, "the share must be between 0 and 1"), (0.5, 0.5, "a speed-up must be at least 1")],
)
def test_amdahl_of_invalid_speedup_raises(share: float, factor: float, said: str) -> None:
    with pytest.raises(ImpossiblePlan, match=said):
        amdahl(share, factor)


def test_budget_without_stages_or_time_raises() -> None:
    with pytest.raises(ImpossiblePlan, match="at least 1 stage"):
        budget([], 0.1)
    with pytest.raises(ImpossiblePlan, match="the time of stage 'a' must be above 0"):
        Stage(name="a", latency_s=0.0)
