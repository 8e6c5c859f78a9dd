"""Stages in a row against a target."""

from __future__ import annotations

import pytest

from headroom.planner.errors import ImpossiblePlan
from headroom.planner.latency_budget import Stage, amdahl, budget

STAGES = [Stage(name="decode", latency_s=0.030), Stage(name="model", latency_s=0.070)]


def test_the_bottleneck_and_what_faster_stages_give() -> None:
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


def test_a_stage_that_cannot_do_it_alone() -> None:
    decode, model = budget(STAGES, 0.060).lines
    assert decode.needed_speedup is None
    assert model.needed_speedup == pytest.approx(70 / 30)


def test_a_budget_that_is_kept_needs_nothing() -> None:
    planned = budget(STAGES, 0.100)
    assert planned.kept
    assert [line.needed_speedup for line in planned.lines] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("share", "factor", "said"),
    [(1.1, 2.0, "the share lies in 0..1"), (0.5, 0.5, "a speed-up is at least 1")],
)
def test_what_is_no_speed_up_is_refused(share: float, factor: float, said: str) -> None:
    with pytest.raises(ImpossiblePlan, match=said):
        amdahl(share, factor)


def test_no_stages_and_stages_without_time_are_refused() -> None:
    with pytest.raises(ImpossiblePlan, match="at least 1 stage"):
        budget([], 0.1)
    with pytest.raises(ImpossiblePlan, match="the time of stage 'a' is above 0"):
        Stage(name="a", latency_s=0.0)
