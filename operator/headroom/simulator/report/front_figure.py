"""Misses against GPU-hours of all autoscalers of one service, with intervals, as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from headroom.charts import axes
from headroom.charts.axes import Axis
from headroom.charts.markup import Markup, joined, pixel, tag
from headroom.charts.svg import label, marks
from headroom.simulator.report import number_format
from headroom.simulator.report.comparison import OURS, family, front, is_bound
from headroom.simulator.report.summary import Summary

WIDTH, HEIGHT = 720.0, 400.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 20.0, 16.0, 44.0
_LETTER_PX, _LINE_PX = 6.4, 14.0
_NAMED = 24
"""With more points than this, only the notable ones are labelled."""
_WIDE_RANGE = 8.0
"""A wider range of costs gets a logarithmic axis."""


@dataclass(frozen=True, slots=True)
class _Box:
    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: _Box) -> float:
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, width) * max(0.0, height)


def figure(rows: Sequence[Summary]) -> Markup:
    """Render the summaries of one service; at least one."""
    across, up = _across(rows), _up(rows)
    places = {row.autoscaler: (across(row.cost), up(row.misses)) for row in rows}
    attainable = [row for row in rows if not is_bound(row.autoscaler)]
    best = [places[row.autoscaler] for row in front(attainable)]
    return tag(
        "svg",
        _grid(across, up),
        tag("path", class_="front", d=_staircase(best, across)) if best else None,
        *(_interval(row, across, up) for row in rows),
        *(_dot(row, *places[row.autoscaler]) for row in rows),
        *_names(rows, places),
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        role="img",
        aria_label="Misses against GPU-hours; the table has the same figures",
    )


def _across(rows: Sequence[Summary]) -> Axis:
    costs = [row.cost + (row.gpu_hours.half_width or 0.0) for row in rows]
    least, most = min(row.cost for row in rows), max(costs)
    if least > 0 and most > _WIDE_RANGE * least:
        return axes.logarithmic(least, most, _LEFT, WIDTH - _RIGHT)
    return axes.linear(1.12 * most, _LEFT, WIDTH - _RIGHT, count=8)


def _up(rows: Sequence[Summary]) -> Axis:
    most = max(row.misses + (row.attainment.half_width or 0.0) for row in rows)
    return axes.root(100 * min(1.0, 1.1 * most), HEIGHT - _BOTTOM, _TOP)


def _grid(across: Axis, up: Axis) -> Markup:
    left, right, bottom = _LEFT, WIDTH - _RIGHT, HEIGHT - _BOTTOM
    parts: list[Markup] = []
    for value, name in up.ticks:
        y = up(value)
        parts.append(tag("line", class_="rule", x1=left, x2=right, y1=y, y2=y))
        parts.append(label(left - 6, y + 3.5, name, class_="tick end"))
    for value, name in across.ticks:
        x = across(value)
        parts.append(tag("line", class_="rule faint", x1=x, x2=x, y1=_TOP, y2=bottom))
        parts.append(label(x, bottom + 15, name, class_="tick middle"))
    kind = ", logarithmic" if across.warp is math.log else ""
    parts += [
        label((left + right) / 2, HEIGHT - 8, f"GPU-hours{kind}", class_="title middle"),
        label(
            0, 0, "misses, share of requests (square-root scale)", class_="title middle",
            transform=f"translate(13 {(_TOP + bottom) / 2:g}) rotate(-90)",
        ),
    ]  # fmt: skip
    return joined(parts)


def _staircase(best: Sequence[tuple[float, float]], across: Axis) -> str:
    """Return the front as a line; attainable points are above and to the right of it."""
    return (
        f"M{pixel(best[0][0])} {pixel(_TOP)}V{pixel(best[0][1])}"
        + "".join(f"H{pixel(x)}V{pixel(y)}" for x, y in best[1:])
        + f"H{pixel(across.end_px)}"
    )


def _interval(row: Summary, across: Axis, up: Axis) -> Markup | None:
    x, y, d = across(row.cost), up(row.misses), ""
    if wide := row.gpu_hours.half_width:
        d += f"M{pixel(across(row.cost - wide))} {pixel(y)}"
        d += f"H{pixel(across(row.cost + wide))}"
    if high := row.attainment.half_width:
        d += f"M{pixel(x)} {pixel(up(row.misses - high))}V{pixel(up(row.misses + high))}"
    return tag("path", class_="interval", d=d) if d else None


def _dot(row: Summary, x: float, y: float) -> Markup:
    says = tag(
        "title",
        f"{row.autoscaler}: {number_format.percent(row.misses)} misses, "
        f"{number_format.hours(row.cost)} GPU-hours",
    )
    if is_bound(row.autoscaler):
        return tag("path", says, class_="dot bound", d=marks([(x, y)], _DIAMOND))
    kind = "ours" if family(row.autoscaler) == OURS else "peer"
    return tag("circle", says, class_=f"dot {kind}", cx=x, cy=y, r=6 if kind == "ours" else 5)


_DIAMOND = "m0 -6l6 6l-6 6l-6 -6Z"


def _names(rows: Sequence[Summary], places: dict[str, tuple[float, float]]) -> list[Markup]:
    """Place each name next to its point where it covers least; Headroom and the front first."""
    taken = [_Box(x - 7, y - 7, x + 7, y + 7) for x, y in places.values()]
    names: list[Markup] = []
    crowd = len(rows) > _NAMED
    named = [row for row in rows if not crowd or _is_notable(row.autoscaler)]
    ordered = sorted(named, key=lambda row: (family(row.autoscaler) != OURS, not row.on_front))
    for row in ordered:
        x, y = places[row.autoscaler]
        width = _LETTER_PX * len(row.autoscaler)
        box = min(_positions(x, y, width), key=lambda each: _covered(each, taken))
        taken.append(box)
        kind = "ours" if family(row.autoscaler) == OURS else ""
        kind = "bound" if is_bound(row.autoscaler) else kind
        names.append(label(box.left, box.bottom - 3, row.autoscaler, class_=f"name {kind}"))
    return names


def _is_notable(autoscaler: str) -> bool:
    """Return whether to label it: Headroom, bounds and defaults; other points have tooltips."""
    return family(autoscaler) in (OURS, autoscaler) or is_bound(autoscaler)


def _positions(x: float, y: float, width: float) -> list[_Box]:
    half = _LINE_PX / 2
    corners = (
        (x + 9, y - half),
        (x - 9 - width, y - half),
        (x + 6, y - half - 12),
        (x + 6, y - half + 12),
        (x - 6 - width, y - half - 12),
        (x - 6 - width, y - half + 12),
        (x - width / 2, y - half - 15),
        (x - width / 2, y - half + 15),
    )
    return [_Box(left, top, left + width, top + _LINE_PX) for left, top in corners]


def _covered(box: _Box, taken: Sequence[_Box]) -> float:
    """Return the covered area of other names and points, and the area outside the plot."""
    plot = _Box(_LEFT, 0, WIDTH, HEIGHT - _BOTTOM)
    area = (box.right - box.left) * (box.bottom - box.top)
    return sum(box.overlap(other) for other in taken) + 3 * (area - box.overlap(plot))
