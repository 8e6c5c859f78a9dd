"""Renders the score table of one service as HTML."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headroom.charts.markup import Markup, tag
from headroom.simulator.report import number_format
from headroom.simulator.report.comparison import OURS, Estimate, family, is_bound
from headroom.simulator.report.summary import Summary


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    means: str
    read: Callable[[Summary], Estimate | None]
    show: Callable[[float], str]


def _count(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else f"{value:.1f}"


def _times(value: float) -> str:
    return f"{value:.2f}"


_COLUMNS = (
    _Column("attainment", "requests answered within the target",
            lambda row: row.attainment, number_format.percent),
    _Column("GPU-hours", "from GPU assignment to the end of the drain",
            lambda row: row.gpu_hours, number_format.hours),
    _Column("x clairvoyant", "GPU-hours over those of the clairvoyant, which knows all arrivals",
            lambda row: row.clairvoyant_ratio, _times),
    _Column("p95", "an unanswered request counts as infinite",
            lambda row: row.p95_s, number_format.seconds),
    _Column("p99", "an unanswered request counts as infinite",
            lambda row: row.p99_s, number_format.seconds),
    _Column("violation minutes", "minutes in which the latency percentile exceeded the target",
            lambda row: row.violation_minutes, _count),
    _Column("wasted starting", "GPU-hours before ready",
            lambda row: row.starting_gpu_hours, number_format.hours),
    _Column("operations", "changes of desired replicas", lambda row: row.operations, _count),
    _Column("flaps", "scale-ups within the cold start + 60 s after a scale-down",
            lambda row: row.flaps, _count),
    _Column("recover", "longest run of violation minutes",
            lambda row: row.recover_s, number_format.duration),
)  # fmt: skip
_WITH_INTERVAL = ("attainment", "GPU-hours", "x clairvoyant")


def table(rows: Sequence[Summary]) -> Markup:
    """Render the summaries of one service."""
    heads = [tag("th", column.name, scope="col", title=column.means) for column in _COLUMNS]
    whole = tag(
        "table",
        tag("thead", tag("tr", tag("th", "autoscaler", scope="col"), *heads)),
        tag("tbody", *map(_row, rows)),
        class_="scores",
    )
    return tag("div", whole, class_="wide")


def _row(row: Summary) -> Markup:
    kind = "ours" if family(row.autoscaler) == OURS else None
    badge: Markup | None = None
    if is_bound(row.autoscaler):
        kind, badge = "bound", tag("span", "bound", class_="badge")
    elif row.on_front:
        badge = tag("span", "front", class_="badge")
    name = tag("td", row.autoscaler, badge)
    cells = (_cell(column, column.read(row)) for column in _COLUMNS)
    return tag("tr", name, *cells, class_=kind)


def _cell(column: _Column, value: Estimate | None) -> Markup:
    if value is None or math.isnan(value.mean):
        return tag("td", "-", data_value="inf")
    width: Markup | None = None
    if value.half_width is not None and column.name in _WITH_INTERVAL:
        width = tag("small", f" ±{column.show(value.half_width)}")
    return tag("td", column.show(value.mean), width, data_value=f"{value.mean:.9g}")
