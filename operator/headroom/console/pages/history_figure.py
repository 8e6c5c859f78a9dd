"""The last hour of one service as SVG: arrivals, replicas by state, waiting, latency.

Panels, colours and marks are those of the simulator's report.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable

import numpy as np

from headroom.charts import axes
from headroom.charts.axes import Axis
from headroom.charts.markup import Markup, tag
from headroom.console.history import Move, TimeSeries
from headroom.console.pages import formatting as fmt
from headroom.console.pages import history_layers as layers

WIDTH, LEFT, RIGHT = 720.0, 46.0, 10.0
HEIGHT = 470.0
SPAN_S = 3600.0
SHORTEST_S = 300.0
TARGETS_SHOWN = 3.0
"""Latency above this many targets is drawn at the upper edge."""
_LOAD, _REPLICAS, _WAITING, _TAIL = (18.0, 90.0), (128.0, 228.0), (266.0, 326.0), (364.0, 448.0)


def draw(
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
        layers.line(series, series["arrivals_rps"], time, load, "load"),
        layers.bounds(series, time, load),
        _panel(_REPLICAS, "replicas; line: desired", replicas, time),
        layers.stack(series, time, replicas),
        layers.line(series, series["desired"], time, replicas, "asked", steps=True),
        layers.moves(moves, time, _REPLICAS[0] + 5),
        _panel(_WAITING, _waiting_title(waiting), waiting, time),
        layers.line(series, series["waiting"], time, waiting, "waiting"),
        _panel(_TAIL, target, tail, time),
        layers.target(series, time, tail, per_s),
        layers.line(series, latency, time, tail, "tail"),
        layers.late(series, time, tail, per_s),
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
        *layers.STATES,
    ):
        data[name] = [_short(value) for value in series[name].tolist()]
    return json.dumps(data, separators=(",", ":"), allow_nan=False)


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
    stacked = sum(np.nan_to_num(series[state]) for state in layers.STATES)
    return max(float(np.max(stacked)), _top(series["desired"]), 1.0)


def _top(values: layers.Values) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if len(finite) else 0.0


def _short(value: float) -> float | None:
    if math.isnan(value):
        return None
    return -1.0 if math.isinf(value) else float(f"{value:.4g}")
