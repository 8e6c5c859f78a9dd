"""The score table of one service as HTML."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headroom.simulator.report import figures, svg
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
            lambda row: row.attainment, figures.percent),
    _Column("GPU-hours", "from getting a GPU to the end of the drain",
            lambda row: row.gpu_hours, figures.hours),
    _Column("x clairvoyant", "GPU-hours over those of the one that knows all arrivals",
            lambda row: row.clairvoyant_ratio, _times),
    _Column("p95", "a miss without an answer counts as infinite",
            lambda row: row.p95_s, figures.seconds),
    _Column("p99", "a miss without an answer counts as infinite",
            lambda row: row.p99_s, figures.seconds),
    _Column("violation minutes", "minutes in which the percentile was missed",
            lambda row: row.violation_minutes, _count),
    _Column("wasted starting", "GPU-hours before ready",
            lambda row: row.starting_gpu_hours, figures.hours),
    _Column("operations", "changes of the number asked for", lambda row: row.operations, _count),
    _Column("flaps", "scale-ups within the cold start + 60 s after a scale-down",
            lambda row: row.flaps, _count),
    _Column("recover", "longest run of violation minutes",
            lambda row: row.recover_s, figures.duration),
)  # fmt: skip
_WITH_INTERVAL = ("attainment", "GPU-hours", "x clairvoyant")


def table(rows: Sequence[Summary]) -> str:
    """Render the summaries of one service."""
    heads = svg.element("th", "autoscaler", scope="col") + "".join(
        svg.element("th", svg.text(column.name), scope="col", title=column.means)
        for column in _COLUMNS
    )
    body = "".join(_row(row) for row in rows)
    whole = svg.element(
        "table",
        svg.element("thead", svg.element("tr", heads)),
        svg.element("tbody", body),
        class_="scores",
    )
    return svg.element("div", whole, class_="wide")


def _row(row: Summary) -> str:
    kind = "ours" if family(row.autoscaler) == OURS else None
    badge = ""
    if is_bound(row.autoscaler):
        kind, badge = "bound", svg.element("span", "bound", class_="badge")
    elif row.on_front:
        badge = svg.element("span", "front", class_="badge")
    name = svg.element("td", svg.text(row.autoscaler), badge)
    cells = "".join(_cell(column, column.read(row)) for column in _COLUMNS)
    return svg.element("tr", name, cells, class_=kind)


def _cell(column: _Column, value: Estimate | None) -> str:
    if value is None or math.isnan(value.mean):
        return svg.element("td", "-", data_value="inf")
    shown = svg.text(column.show(value.mean))
    if value.half_width is not None and column.name in _WITH_INTERVAL:
        shown += svg.element("small", f" ±{column.show(value.half_width)}")
    return svg.element("td", shown, data_value=f"{value.mean:.9g}")
