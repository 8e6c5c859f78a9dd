"""Table, report and picture show what was seen."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from demo import figure, report, table
from demo.checks import Requirements, evaluate
from demo.recording import Look, Recording
from load.outcomes import Outcome

Run = Callable[[], Recording]
REQUIRED = Requirements(
    gpus=8,
    least_attainment=0.9,
    last_stretch_s=20.0,
    latest_send_s=0.1,
    longest_unanswered_s=16.0,
)


def shown(renderable: object, width: int = 160) -> str:
    console = Console(width=width, record=True, file=Path("/dev/null").open("w"))  # noqa: SIM115
    console.print(renderable)
    console.file.close()
    return console.export_text()


def test_the_live_table_shows_each_quantity_with_its_bound(good_run: Run) -> None:
    run = good_run()
    rows = {row.name: (row.now, row.bound, row.style) for row in table.rows(run.looks[2], run)}
    assert rows == {
        "arrivals": ("5.0 /s", "", ""),
        "waiting": ("2", "at most 4 per replica", "green"),
        "p95, last 10 s": ("0.40 s", "target 1.5 s", "green"),
        "utilization": ("48.8 %", "ceiling 80.0 %", "green"),
        "replicas": ("1 ready, 2 warming, 3 desired", "1 to 8", "yellow"),
        "lost requests": ("0", "", ""),
    }


def test_the_live_table_shows_the_reason_and_the_last_moves(good_run: Run) -> None:
    run = good_run()
    text = shown(table.view(run.looks[-1], run, "demo"))
    assert "now       LatencyModel: 2 replicas are needed" in text
    assert "at  10 s  1 → 3  LatencyModel: 3 replicas are needed" in text


def test_before_the_first_second_everything_is_unknown_and_nothing_is_zero(
    look: Callable[..., Look],
) -> None:
    seen = look(0, 1, waiting=None)
    rows = {row.name: row.now for row in table.rows(seen, Recording())}
    assert rows["arrivals"] == rows["waiting"] == rows["utilization"] == "?"
    assert "no decision yet" in table.line(seen, Recording())


@pytest.mark.parametrize(("waiting", "style"), [(4, "green"), (5, "bold red"), (None, "dim")])
def test_what_is_beyond_its_bound_is_red(
    look: Callable[..., Look], waiting: int | None, style: str
) -> None:
    rows = {r.name: r.style for r in table.rows(look(0, 1, waiting=waiting), Recording())}
    assert rows["waiting"] == style


def test_without_a_terminal_a_line_says_the_same(good_run: Run) -> None:
    run = good_run()
    line = table.line(run.looks[3], run)
    assert line.startswith("  20 s  arrivals 5.0 /s | waiting 2 | p95, last 10 s 0.40 s |")
    assert "\n" not in line


def test_the_report_holds_figures_decisions_and_checks(good_run: Run) -> None:
    run = good_run()
    text = shown(report.render(run, evaluate(run, REQUIRED)))
    for expected in (
        "300: 300 ok, 0 lost",
        "100.0 % of all requests within 1.5 s",
        "145, held by 3 pods",
        "3 GPUs throughout: 180 (19.4 % saved)",
        "8.5 s median, 9 s longest, of 2 pods",
        "11 s 1 → 3 LatencyModel",
        "no accepted request was lost",
        "0 lost, 0 unreachable",
    ):
        assert expected in " ".join(text.split())
    assert "FAILED" not in text


def test_a_failed_check_is_plain_to_see(good_run: Run) -> None:
    run = good_run()
    run.operator_restarts = 3
    text = shown(report.render(run, evaluate(run, REQUIRED)))
    assert "FAILED" in text
    assert "3 restarts" in text


def test_a_run_without_data_still_has_a_report() -> None:
    assert "FAILED" in shown(report.render(Recording(), evaluate(Recording(), REQUIRED)))


def test_the_picture_is_a_png_of_the_size_it_should_have(good_run: Run, tmp_path: Path) -> None:
    path = tmp_path / "folder" / "run.png"
    figure.draw(good_run(), path, title="demo: p95 below 1.5 s", subtitle="a recording")
    raw = path.read_bytes()
    assert raw.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", raw[16:24]) == (1430, 1300)


def test_the_picture_marks_windows_that_missed(good_run: Run, tmp_path: Path) -> None:
    run, path = good_run(), tmp_path / "run.png"
    figure.draw(run, path, title="t", subtitle="s")
    kept = path.read_bytes()
    run.windows[2].tally.outcomes[Outcome.REFUSED] = 50
    figure.draw(run, path, title="t", subtitle="s")
    assert path.read_bytes() != kept
