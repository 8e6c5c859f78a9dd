"""The error budget: minutes counted by hand, and their checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.controller.report.error_budget import Day, ErrorBudget, held
from headroom.scaling.windows.window_totals import WindowTotal

DAY = 1440
BOUNDS_S = (0.1, 0.2, math.inf)


def after(outcomes: Mapping[int, bool | None]) -> ErrorBudget:
    budget = ErrorBudget()
    for minute, kept in outcomes.items():
        budget = budget.judge(minute, kept)
    return budget


def test_an_hour_with_six_bad_minutes_burns_ten_times_too_fast() -> None:
    budget = after({minute: minute % 10 != 0 for minute in range(60)})
    assert (budget.kept, budget.missed, budget.attainment) == (54, 6, 0.9)
    assert budget.burn_rate(0.99) == pytest.approx(10.0)
    assert budget.remaining(0.99) == pytest.approx(1 - 6 / 403.2)


def test_missed_minute_after_an_hour_counts_but_does_not_burn() -> None:
    budget = after({0: False} | dict.fromkeys(range(1, 61), True))
    assert budget.burn_rate(0.99) == 0.0
    assert budget.missed == 1


def test_after_a_gap_the_minutes_before_it_have_moved_on() -> None:
    assert after({0: False, 59: True}).burn_rate(0.9) == pytest.approx(5.0)
    assert after({0: False, 60: True}).burn_rate(0.9) == 0.0
    assert after({0: False, 10**6: None}).burn_rate(0.9) is None


def test_a_minute_that_does_not_count_changes_no_sum() -> None:
    budget = after({0: True, 1: None, 2: None, 3: False})
    assert (budget.kept, budget.missed) == (1, 1)
    assert after({0: None}).attainment is None
    assert after({0: None}).remaining(0.99) == 1.0


def test_a_minute_is_judged_once() -> None:
    budget = after({5: False})
    assert budget.judge(5, True) is budget
    assert budget.judge(4, True) is budget


@pytest.mark.parametrize("ahead", [2, 10, DAY, 40 * DAY], ids="{} minutes".format)
def test_minutes_after_a_clock_that_was_ahead_count(ahead: int) -> None:
    now = 100 * DAY + 60
    budget = ErrorBudget.from_checkpoint(after({now + ahead: True}).to_checkpoint())
    for minute in range(now, now + 30):
        budget = budget.judge(minute, False)
    assert budget.missed == 30
    assert budget.minute == now + 29
    kept = ahead < DAY  # what a day that has not begun had does not count
    assert budget.kept == kept
    assert budget.burn_rate(0.5) == pytest.approx(2 * 30 / 31)  # by order, whatever the labels


def test_error_budget_after_28_days_drops_the_first() -> None:
    budget = after({day * DAY: False for day in range(28)})
    assert budget.missed == 28
    budget = budget.judge(28 * DAY, True)
    assert (budget.missed, budget.kept) == (27, 1)
    assert budget.days[0] == Day(day=1, missed=1)


@pytest.mark.parametrize(
    ("counts", "missed", "expected"),
    [
        ((95.0, 100.0, 100.0), 0.0, True),
        ((94.0, 100.0, 100.0), 0.0, False),  # the 95th lies in the second bucket, above 0.1
        ((95.0, 95.0, 95.0), 5.0, True),
        ((95.0, 95.0, 95.0), 6.0, False),  # refused ones took forever
        ((0.0, 0.0, 0.0), 0.0, None),
    ],
)
def test_minute_is_met_when_its_percentile_is(
    counts: tuple[float, ...], missed: float, expected: bool | None
) -> None:
    total = WindowTotal(arrivals=0.0, missed=missed, latency=np.array(counts))
    assert held(BOUNDS_S, total, 0.95, 0.1) is expected


@given(st.dictionaries(st.integers(0, 60 * DAY), st.sampled_from([True, False, None]), max_size=60))
def test_error_budget_survives_a_restart(outcomes: dict[int, bool | None]) -> None:
    budget = after(dict(sorted(outcomes.items())))
    assert ErrorBudget.from_checkpoint(budget.to_checkpoint()) == budget
    assert len(str(budget.to_checkpoint())) < 600


@pytest.mark.parametrize(
    "stored",
    [
        None,
        [],
        {"minute": None, "recent": [0], "days": []},
        {"minute": -1, "recent": [0, 0], "days": []},
        {"minute": 1, "recent": [0, 0.5], "days": []},
        {"minute": 1, "recent": [0, 0], "days": [[1, 2]]},
        {"minute": 1, "recent": [0, 0], "days": [[1, 2, 3]] * 29},
        {"minute": True, "recent": [0, 0], "days": []},
    ],
)
def test_invalid_error_budget_is_rejected(stored: object) -> None:
    with pytest.raises(ValueError, match="errorBudget"):
        ErrorBudget.from_checkpoint(stored)
