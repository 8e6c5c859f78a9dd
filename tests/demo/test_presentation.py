"""The demo's table and report show failures and missing values as such."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from demo import report, table
from demo.checks import Requirements, evaluate
from demo.recording import Look, Recording

REQUIRED = Requirements(
    gpus=8,
    least_attainment=0.9,
    last_stretch_s=20.0,
    latest_send_s=0.1,
    longest_unanswered_s=16.0,
)


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


def test_report_without_data_is_failed() -> None:
    assert "FAILED" in shown(Recording())


def test_table_before_the_first_second_shows_unknown_instead_of_zero(
    look: Callable[..., Look],
) -> None:
    seen = look(0, 1, waiting=None)
    rows = {row.name: row.now for row in table.rows(seen, Recording())}
    assert rows["arrivals"] == rows["waiting"] == rows["utilization"] == "?"
    assert "no decision yet" in table.line(seen, Recording())
