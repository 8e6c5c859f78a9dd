"""The demo's table and report show failures and missing values as such."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from demo import figure, layout, report, table
from demo.checks import evaluate
from demo.recording import Recording, Snapshot
from headroom.api.service_status.demand_status import DemandStatus
from support.demo_world import REQUIRED


def shown(recording: Recording) -> str:
    with Path("/dev/null").open("w") as nowhere:
        console = Console(width=160, record=True, file=nowhere)
        console.print(report.render(recording, evaluate(recording, REQUIRED)))
        return console.export_text()


def test_report_of_a_good_run_has_no_failure_and_a_failed_check_is_marked(
    good_run: Callable[[], Recording],
) -> None:
    run = good_run()
    assert "FAILED" not in shown(run)
    run.operator_restarts = 3
    text = shown(run)
    assert "FAILED" in text
    assert "3 restarts" in text


def test_report_of_a_busy_machine_says_what_its_figures_are_worth(
    good_run: Callable[[], Recording],
) -> None:
    run = good_run()
    assert "too busy" not in shown(run)
    assert run.summary is not None
    run.summary = replace(run.summary, late_p99_s=0.2)
    assert "too busy, so the other figures say little about the operator" in " ".join(
        shown(run).split()
    )


def test_report_without_data_is_failed() -> None:
    assert "FAILED" in shown(Recording())


HIDDEN = {
    "known": "AtLeast",
    "rate": ">=160/s",
    "requestsPerSecond": 160.0,
    "atMostPerSecond": 533.0,
}


def test_table_shows_hidden_demand_as_a_bound(snapshot: Callable[..., Snapshot]) -> None:
    def bound(seen: Snapshot) -> str:
        return next(row.bound for row in table.rows(seen, Recording()) if row.name == "arrivals")

    assert bound(snapshot(0, 1, demand=HIDDEN)) == "demand >=160/s"
    assert bound(snapshot(0, 1, demand=HIDDEN | {"known": "Exact"})) == ""
    assert bound(snapshot(0, 1)) == ""


@pytest.mark.parametrize(
    ("known", "label"),
    [
        ("AtLeast", "demand is at least this"),
        ("IncludesRetries", "demand is at most this"),
        ("Exact", None),
    ],
)
def test_picture_marks_arrivals_that_are_a_bound(
    good_run: Callable[[], Recording], known: str, label: str | None
) -> None:
    run = good_run()
    demand = DemandStatus.model_validate(HIDDEN | {"known": known})
    run.snapshots = [
        replace(one, service=replace(one.service, demand=demand)) for one in run.snapshots
    ]
    labels = figure.drawn(run, title="", subtitle="").axes[0].get_legend_handles_labels()[1]
    assert [each for each in labels if each.startswith("demand")] == ([label] if label else [])


def test_table_before_the_first_second_shows_unknown_instead_of_zero(
    snapshot: Callable[..., Snapshot],
) -> None:
    seen = snapshot(0, 1, waiting=None)
    rows = {row.name: row.now for row in table.rows(seen, Recording())}
    assert rows["arrivals"] == rows["waiting"] == rows["utilization"] == "?"
    assert "no decision yet" in layout.line(table.rows(seen, Recording()), seen, Recording())
