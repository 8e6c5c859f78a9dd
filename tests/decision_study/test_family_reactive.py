"""Cheapest reactive settings in hindsight, compared with Headroom and the clairvoyant."""

from __future__ import annotations

import pytest

from decision_study.family import reactive
from decision_study.family.cell_results import CellResult
from decision_study.family.kept import Kept
from support.fakes_family import run

CELL = CellResult(
    name="develop-000-jumps",
    ours=run("headroom", 0.98, 3.0),
    yardstick=run("clairvoyant", 0.99, 2.0),
    ideal=None,
)
FAST = run("ideal-reactive:hold_s", 0.96, 2.2, undone=9)
CALM = run("ideal-reactive:ceiling", 0.97, 3.4, undone=4)
LATE = run("ideal-reactive:trailing_s", 0.94, 1.5)


@pytest.mark.parametrize(
    ("runs", "cheapest", "calm"),
    [
        pytest.param([CALM, LATE, FAST], FAST, CALM, id="calm is not the cheapest"),
        pytest.param([CALM], CALM, CALM, id="four flaps an hour are calm"),
        pytest.param([FAST], FAST, None, id="none is calm"),
        pytest.param([LATE], None, None, id="none keeps the promise"),
    ],
)
def test_cheapest_settings_keep_the_promise(
    runs: list[Kept], cheapest: Kept | None, calm: Kept | None
) -> None:
    found = reactive.compared(CELL, runs)
    assert (found.cheapest, found.calm) == (cheapest, calm)


def test_table_has_a_row_per_class_and_one_of_all() -> None:
    other = reactive.compared(CELL, [LATE])
    rows = reactive.table([reactive.compared(CELL, [FAST, CALM]), other]).rows
    assert rows == (
        ("jumps", "2", "2", "1.50x", "1.70x", "1", "1.10x", "9"),
        ("all", "2", "2", "1.50x", "1.70x", "1", "1.10x", "9"),
    )


def test_every_setting_is_a_run_of_its_own() -> None:
    jobs = reactive.jobs("develop-000-jumps")
    assert len({job.knobs for job in jobs}) == len(jobs) == 30
