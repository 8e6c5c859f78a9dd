"""Renders summaries as tables for a terminal: one per service of each scenario."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from headroom.simulator.report import number_format
from headroom.simulator.report.comparison import OURS, Estimate, family
from headroom.simulator.report.summary import Summary

_Cell = Callable[[Summary], str]
_COLUMNS: tuple[tuple[str, _Cell], ...] = (
    ("attainment", lambda row: _percent(row.attainment)),
    ("p95", lambda row: number_format.seconds(row.p95_s.mean)),
    ("p99", lambda row: number_format.seconds(row.p99_s.mean)),
    ("violation\nminutes", lambda row: _count(row.violation_minutes)),
    ("GPU-hours", lambda row: _spread(row.gpu_hours, number_format.hours)),
    ("x clair-\nvoyant", lambda row: _times(row.clairvoyant_ratio)),
    ("wasted\nstarting", lambda row: number_format.hours(row.starting_gpu_hours.mean)),
    ("opera-\ntions", lambda row: _count(row.operations)),
    ("flaps", lambda row: _count(row.flaps)),
    ("recover", lambda row: number_format.duration(row.recover_s.mean)),
)
_AT_CLIENTS: tuple[tuple[str, _Cell], ...] = (
    ("unsent\nat most", lambda row: _count(row.peak_unsent)),
    ("tries per\nrequest", lambda row: f"{row.tries.mean:.2f}"),
)
"""Only in tables of clients that wait or try again."""
_SPARED = (
    *("opera-\ntions", "wasted\nstarting", "recover", "p99"),
    *("tries per\nrequest", "violation\nminutes", "flaps", "p95", "unsent\nat most"),
    "x clair-\nvoyant",
)
"""Columns that a narrow terminal leaves out, in this order."""
LEGEND = (
    "* on the front: no other autoscaler misses less at the same or lower cost (except bounds). A "
    "lost, late, refused or expired request is a miss.\nx clairvoyant: GPU-hours over those of the "
    "clairvoyant, which knows all arrivals and pays for cold starts.\nWasted starting: GPU-hours "
    "before ready. Recover: longest run of violation minutes."
)
CLIENTS = (
    " A request counts once, from the moment at which its client wants to send it; an answer to a "
    "retry is late. Unsent: waiting at clients for a connection, unseen by servers."
)
INTERVAL = " ± is the 95 % interval of the mean over seeds (Student's t)."


def tables(summaries: Sequence[Summary]) -> RenderableType:
    """Render the summaries, services in order, and a legend of the columns."""
    parts: list[RenderableType] = []
    for _, rows in groupby(summaries, key=lambda row: (row.scenario, row.service)):
        parts += [_Fitting(list(rows)), Text()]
    several = any(len(row.seeds) > 1 for row in summaries)
    legend = LEGEND + (CLIENTS if _at_clients(summaries) else "") + (INTERVAL if several else "")
    return Group(*parts, Text(legend, style="dim"))


def _at_clients(rows: Sequence[Summary]) -> bool:
    """Return whether clients had more to do than to send each request once."""
    return any(row.peak_unsent.mean > 0 or row.tries.mean > 1 for row in rows)


@dataclass(frozen=True)
class _Fitting:
    """A table with as many columns as fit the terminal."""

    rows: Sequence[Summary]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table, and the names of columns left out."""
        unbound = options.update(max_width=10_000)
        known = [name for name, _ in _columns(self.rows)]
        spared = [name for name in _SPARED if name in known]
        for count in range(len(spared) + 1):
            table = _table(self.rows, spared[:count])
            if Measurement.get(console, unbound, table).maximum <= options.max_width:
                break
        yield table
        if count:
            names = ", ".join(name.replace("-\n", "").replace("\n", " ") for name in spared[:count])
            yield Text(f"No room for {names}: widen the terminal, or see --out.", style="dim")


def _columns(rows: Sequence[Summary]) -> tuple[tuple[str, _Cell], ...]:
    return _COLUMNS + (_AT_CLIENTS if _at_clients(rows) else ())


def _table(rows: Sequence[Summary], left_out: Collection[str]) -> Table:
    first = rows[0]
    promise = f"p{100 * first.percentile:g} within {number_format.seconds(first.target_s)}"
    seeds = number_format.counted(max(len(row.seeds) for row in rows), "seed")
    table = Table(
        title=Text(f"{first.scenario}: {first.service}, {promise}, {seeds}", style="bold"),
        title_justify="left",
        box=None,
        pad_edge=False,
        header_style="dim",
    )
    table.add_column("", width=1)
    table.add_column("autoscaler", overflow="fold", min_width=16, max_width=40)
    columns = [(name, cell) for name, cell in _columns(rows) if name not in left_out]
    for name, _ in columns:
        table.add_column(name, justify="right", no_wrap=True, vertical="top")
    for row in rows:
        cells = [cell(row) for _, cell in columns]
        table.add_row(
            "*" if row.on_front else "",
            Text(row.autoscaler),
            *cells,
            style="bold" if family(row.autoscaler) == OURS else "",
        )
    return table


def _percent(value: Estimate) -> str:
    return _spread(value, number_format.percent)


def _spread(value: Estimate, show: Callable[[float], str]) -> str:
    if value.half_width is None:
        return show(value.mean)
    return f"{show(value.mean)} ±{show(value.half_width)}"


def _count(value: Estimate) -> str:
    return f"{value.mean:.0f}" if value.mean == round(value.mean) else f"{value.mean:.1f}"


def _times(value: Estimate | None) -> str:
    if value is None or math.isnan(value.mean):
        return "-"
    return f"{value.mean:.2f}"
