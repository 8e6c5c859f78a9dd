"""The servers side by side: each value, with its ratio to Headroom's in brackets."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from rich.table import Table

from serverbench.judgement.findings import Findings
from serverbench.records import Case
from serverbench.servers import OURS


class Column(NamedTuple):
    """One value of one case."""

    title: str
    case: Case
    name: str
    digits: int = 1
    ratio: bool = True


COLUMNS = (
    Column("idle\n% core", Case.IDLE, "cpu_percent", 2, ratio=False),
    Column("idle\nMB", Case.IDLE, "rss_mb", 0),
    Column("20/s\np50 ms", Case.LIGHT, "p50_ms", 2),
    Column("300/s\np95 ms", Case.STEADY, "p95_ms"),
    Column("500/s CPU\nms/request", Case.CPU, "cpu_ms", 2),
    Column("highest rate\np95 < 100 ms", Case.KNEE, "highest_rps", 0),
    Column("1.5x overload\ngood/s", Case.OVERLOAD, "good_rps", 0),
    Column("refusal\np50 ms", Case.OVERLOAD, "refused_p50_ms", 2, ratio=False),
    Column("3 s after\np50 ms", Case.OVERLOAD, "recovery_p50_ms", 0),
    Column("SIGTERM\nof 16", Case.SIGTERM, "answered", 0, ratio=False),
)


def side_by_side(
    found: Findings,
    cases: Collection[Case],
    servers: Sequence[str],
    titles: Sequence[str],
) -> Table | None:
    """Return one row per server; None where no value of it was requested."""
    columns = [column for column in COLUMNS if column.case in cases]
    if not columns:
        return None
    rows = Table(title="Side by side (in brackets: times Headroom's)", title_justify="left")
    rows.add_column("server")
    for column in columns:
        rows.add_column(column.title, justify="right")
    for server, title in zip(servers, titles, strict=True):
        rows.add_row(title, *(cell(found, column, server) for column in columns))
    return rows


def cell(found: Findings, column: Column, server: str) -> str:
    """Return a cell's text; empty where nothing was measured."""
    value = found.median(column.case, server, column.name)
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return "none"
    text = f"{value:.{column.digits}f}"
    ours = found.median(column.case, OURS, column.name)
    if server == OURS or not column.ratio or not math.isfinite(ours) or not ours:
        return text
    return f"{text} ({value / ours:.2f})"
