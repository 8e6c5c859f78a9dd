"""The table in a terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from headroom.simulator.outcome import Outcome
from headroom.simulator.report.summary import summarized
from headroom.simulator.report.terminal_table import tables
from support.fakes_outcome import outcome


def shown(outcomes: Sequence[Outcome], width: int = 160) -> list[str]:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(tables(summarized(outcomes)))
    return console.export_text().splitlines()


def test_terminal_table_row_has_every_figure() -> None:
    lines = shown([outcome(gpu_hours=4.0), outcome("clairvoyant", gpu_hours=3.2)])
    assert lines[0].strip() == "ramp: vision, p95 within 100 ms, 1 seed"
    row = next(line for line in lines if "headroom" in line)
    assert row.split() == (
        "* headroom 98.00 % 80 ms 125 ms 4 4.00 1.25 0.25 6 1 2 min".split()  # noqa: SIM905
    )


def test_terminal_table_of_several_seeds_shows_intervals() -> None:
    lines = shown([outcome(seed=1, gpu_hours=4.0), outcome(seed=2, gpu_hours=4.2)])
    row = next(line for line in lines if "headroom" in line)
    assert "98.00 % ±0.00 %" in row
    assert "4.10 ±1.27" in row  # 12.706 x 0.1
    assert any("Student" in line for line in lines)


def test_terminal_table_shows_what_waits_and_is_retried_at_clients() -> None:
    lines = shown([outcome(peak_unsent=1234, tries=1500), outcome("clairvoyant")])
    row = next(line for line in lines if "headroom" in line)
    assert row.split()[-2:] == ["1234", "1.50"]
    assert any("unsent" in line for line in lines)
    assert not any("unsent" in line for line in shown([outcome()]))
    narrow = shown([outcome(peak_unsent=1234, tries=1500)], 80)
    assert max(map(len, narrow)) <= 80
    assert any("1234" in line for line in narrow)


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_terminal_table_on_narrow_terminal_drops_whole_columns(width: int) -> None:
    seeds = [outcome(seed=1, gpu_hours=4.0), outcome(seed=2, gpu_hours=4.2)]
    lines = shown(seeds, width)
    assert max(map(len, lines)) <= width
    assert not any("…" in line for line in lines)
    row = next(line for line in lines if "headroom" in line)
    assert "98.00 % ±0.00 %" in row
    assert "4.10 ±1.27" in row
    left_out = any("No room for operations" in line for line in lines)
    assert left_out == (width < 120)
    assert any("--out." in line for line in lines) == left_out, "an option of the command"
    assert ("80 ms" in row) == (width > 60)  # p95 is among the last to go


def test_terminal_table_per_service_escapes_names() -> None:
    lines = shown([outcome("[red]x", service="a"), outcome("x", service="[bold]")])
    assert sum("within 100 ms" in line for line in lines) == 2
    assert any("[red]x" in line for line in lines)
    assert any("ramp: [bold]" in line for line in lines)
