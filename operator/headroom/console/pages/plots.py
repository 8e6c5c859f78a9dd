"""The last hour of one service as SVG: arrivals, replicas by state, waiting, latency.

Panels, colours and marks are those of the simulator's report.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headroom.charts import axes
from headroom.charts.axes import Axis
from headroom.charts.markup import Markup, tag
from headroom.charts.svg import path
from headroom.console.history import Move, TimeSeries
from headroom.console.pages import formatting as fmt

WIDTH, LEFT, RIGHT = 720.0, 46.0, 10.0
HEIGHT = 470.0
SPAN_S = 3600.0
SHORTEST_S = 300.0
TARGETS_SHOWN = 3.0
"""Latency above this many targets is drawn at the upper edge."""
STATES = ("ready", "warming", "late", "unschedulable", "broken")
"""From the bottom of the stack to its top."""
GAP_S = 45.0
"""A longer gap between samples interrupts the lines."""

Values = NDArray[np.floating[Any]]

_LOAD, _REPLICAS, _WAITING, _TAIL = (18.0, 90.0), (128.0, 228.0), (266.0, 326.0), (364.0, 448.0)
_ARROWS = {1.0: "m-2.5 -4l2.5 -3l2.5 3", -1.0: "m-2.5 4l2.5 3l2.5 -3"}
"""Open arrows away from the line, by column `bound`: the demand is there."""
_UP, _DOWN = "l-4 0l4 -6.5l4 6.5Z", "l-4 0l4 6.5l4 -6.5Z"


def history_figure(
    series: TimeSeries, moves: Iterable[Move], *, now_s: float, target_s: float, percentile: float
) -> Markup:
    """Draw the last hour up to now."""
    time = _time_axis(series, now_s)
    load = _linear(1.05 * _top(series["arrivals_rps"]), _LOAD)
    replicas = axes.linear(
        _highest_stack(series), _REPLICAS[1], _REPLICAS[0] + 12, whole=True, label=fmt.number
    )
    waiting = axes.counts(_top(series["waiting"]), _WAITING[1], _WAITING[0], label=fmt.number)
    unit, per_s = ("ms", 1000.0) if target_s < 2.0 else ("s", 1.0)
    tail = _linear(per_s * TARGETS_SHOWN * target_s, _TAIL)
    target = f"p{100 * percentile:g}, {unit} (target {fmt.seconds(target_s)}, dashed)"
    latency = per_s * series["latency_s"]
    return tag(
        "svg",
        _panel(_LOAD, "arrivals, requests per second", load, time),
        _line(series, series["arrivals_rps"], time, load, "load"),
        _bounds(series, time, load),
        _panel(_REPLICAS, "replicas; line: desired", replicas, time),
        _stack(series, time, replicas),
        _line(series, series["desired"], time, replicas, "asked", steps=True),
        _marks(moves, time),
        _panel(_WAITING, _waiting_title(waiting), waiting, time),
        _line(series, series["waiting"], time, waiting, "waiting"),
        _panel(_TAIL, target, tail, time),
        _target(series, time, tail, per_s),
        _line(series, latency, time, tail, "tail"),
        _late(series, time, tail, per_s),
        _clock(time),
        tag("line", class_="cursor", x1=0, x2=0, y1=_LOAD[0], y2=_TAIL[1]),
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        role="img",
        tabindex=0,
        aria_label="Last hour: arrivals, replicas, waiting, latency",
        data_from=str(round(time.low, 1)),
        data_till=str(round(time.high, 1)),
    )


def readings(series: TimeSeries) -> str:
    """Return the values to show under the pointer, as JSON; null is unknown, -1 unbounded."""
    data: dict[str, list[float | None]] = {
        "t": [round(value, 1) for value in series.times_s.tolist()]
    }
    for name in (
        "arrivals_rps",
        "waiting",
        "latency_s",
        "utilization",
        "desired",
        "bound",
        *STATES,
    ):
        data[name] = [_short(value) for value in series[name].tolist()]
    return json.dumps(data, separators=(",", ":"), allow_nan=False)


def sparkline(series: TimeSeries, *, now_s: float, points: int = 60) -> Markup | None:
    """Draw arrivals of the last hour as a line as high as a line of text; None where none is."""
    values = series["arrivals_rps"]
    if not len(values) or not np.isfinite(values).any():
        return None
    top = max(_top(values), 1e-9)
    bins = np.floor((series.times_s - (now_s - SPAN_S)) / SPAN_S * points).astype(int)
    seen = np.isfinite(values) & (bins >= 0) & (bins < points)
    most = np.full(points, -1.0)
    np.maximum.at(most, bins[seen], values[seen])
    heights = np.where(most < 0.0, np.nan, 15.0 - 13.0 * most / top).tolist()
    shown = [(1.5 * index, y) for index, y in enumerate(heights)]
    line = tag("path", d=path(shown), class_="line load")
    return tag("svg", line, viewBox="0 0 90 16", class_="spark", aria_hidden="true")


def _time_axis(series: TimeSeries, now_s: float) -> Axis:
    first_s = float(series.times_s[0]) if len(series.times_s) else now_s
    span_s = min(SPAN_S, max(SHORTEST_S, now_s - first_s))
    return axes.time(
        now_s - span_s,
        now_s,
        LEFT,
        WIDTH - RIGHT,
        count=6,
        label=lambda at: fmt.clock(at)[:5],
    )


def _linear(high: float, edges: tuple[float, float]) -> Axis:
    return axes.linear(high, edges[1], edges[0], count=3, label=fmt.number)


def _panel(edges: tuple[float, float], title: str, up: Axis, time: Axis) -> Markup:
    top, bottom = edges
    rules = [
        tag("line", class_="rule", x1=LEFT, x2=WIDTH - RIGHT, y1=up(value), y2=up(value))
        for value, _ in up.ticks
    ]
    names = [
        tag("text", name, class_="tick end", x=LEFT - 6, y=up(value) + 3.5)
        for value, name in up.ticks
    ]
    uprights = [
        tag("line", class_="rule faint", x1=time(at), x2=time(at), y1=top, y2=bottom)
        for at, _ in time.ticks
    ]
    heading = tag("text", title, class_="title", x=LEFT, y=top - 6)
    return tag("g", *uprights, *rules, *names, heading)


def _line(
    series: TimeSeries, values: Values, time: Axis, up: Axis, kind: str, *, steps: bool = False
) -> Markup:
    return tag(
        "path", class_=f"line {kind}", d=path(_points(series, values, time, up), steps=steps)
    )


def _points(series: TimeSeries, values: Values, time: Axis, up: Axis) -> list[tuple[float, float]]:
    """Return the points within the axis, with a gap where no sample was taken."""
    points: list[tuple[float, float]] = []
    last_s = None
    for at, value in zip(series.times_s.tolist(), values.tolist(), strict=True):
        if at < time.low:
            continue
        if last_s is not None and at - last_s > GAP_S:
            points.append((time(at), math.nan))
        points.append((time(at), up(value)))
        last_s = at
    return points


def _stack(series: TimeSeries, time: Axis, up: Axis) -> Markup:
    """Draw a bar per sample and state, so that gaps stay visible."""
    parts: dict[str, list[str]] = {state: [] for state in STATES}
    times = series.times_s.tolist()
    columns = {state: np.nan_to_num(series[state]).tolist() for state in STATES}
    for index, at in enumerate(times):
        if at < time.low:
            continue
        after = times[index + 1] if index + 1 < len(times) else at + 10.0
        left, right = time(at), time(min(after, at + GAP_S))
        base = 0.0
        for state in STATES:
            number = columns[state][index]
            if number:
                low, high = up(base), up(base + number)
                parts[state].append(f"M{left:.1f} {low:.1f}V{high:.1f}H{right:.1f}V{low:.1f}Z")
                base += number
    return tag(
        "g",
        *(
            tag("path", class_=f"state {state}", d="".join(parts[state]))
            for state in STATES
            if parts[state]
        ),
    )


def _marks(moves: Iterable[Move], time: Axis) -> Markup:
    """Mark decisions at the upper edge: filled for more replicas, hollow for fewer."""
    up: list[float] = []
    down: list[float] = []
    for move in moves:
        if move.time_s >= time.low:
            (up if move.after > move.before else down).append(move.time_s)
    y = _REPLICAS[0] + 5
    return tag(
        "g",
        tag("path", class_="move up", d="".join(f"M{time(at):.1f} {y + 2:.1f}{_UP}" for at in up)),
        tag(
            "path",
            class_="move down",
            d="".join(f"M{time(at):.1f} {y - 4:.1f}{_DOWN}" for at in down),
        ),
    )


def _target(series: TimeSeries, time: Axis, tail: Axis, per_s: float) -> Markup:
    points = _points(series, per_s * series["target_s"], time, tail)
    return tag("path", class_="line target", d=path(points, steps=True))


def _late(series: TimeSeries, time: Axis, tail: Axis, per_s: float) -> Markup:
    """Mark each sample above its target: colour is never the only sign."""
    over = series["latency_s"] > series["target_s"]
    places = [
        f"M{time(at):.1f} {tail(per_s * value):.1f}m-2 -2l4 4m0 -4l-4 4"
        for at, value, late in zip(
            series.times_s.tolist(), series["latency_s"].tolist(), over.tolist(), strict=True
        )
        if late and at >= time.low
    ]
    return tag("path", class_="late", d="".join(places))


def _bounds(series: TimeSeries, time: Axis, load: Axis) -> Markup:
    """Mark samples whose arrivals are a lower or an upper bound of the demand."""
    places = [
        f"M{time(at):.1f} {load(value):.1f}{_ARROWS[bound]}"
        for at, value, bound in zip(
            series.times_s.tolist(),
            series["arrivals_rps"].tolist(),
            series["bound"].tolist(),
            strict=True,
        )
        if bound in _ARROWS and at >= time.low and math.isfinite(value)
    ]
    return tag("path", class_="bound", d="".join(places))


def _clock(time: Axis) -> Markup:
    return tag(
        "g",
        *(
            tag("text", name, class_="tick middle", x=time(at), y=HEIGHT - 6)
            for at, name in time.ticks
        ),
    )


def _waiting_title(waiting: Axis) -> str:
    return "waiting, requests" + (" (logarithmic)" if waiting.warp is math.log1p else "")


def _highest_stack(series: TimeSeries) -> float:
    if not len(series.times_s):
        return 1.0
    stacked = sum(np.nan_to_num(series[state]) for state in STATES)
    return max(float(np.max(stacked)), _top(series["desired"]), 1.0)


def _top(values: Values) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if len(finite) else 0.0


def _short(value: float) -> float | None:
    if math.isnan(value):
        return None
    return -1.0 if math.isinf(value) else float(f"{value:.4g}")
