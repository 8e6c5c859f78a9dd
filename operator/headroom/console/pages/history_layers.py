"""Layers of the panels of the last hour: lines, the stack of replicas, marks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headroom.charts.axes import Axis
from headroom.charts.markup import Markup, tag
from headroom.charts.svg import path
from headroom.console.history import Move, TimeSeries

STATES = ("ready", "warming", "late", "unschedulable", "broken")
"""From the bottom of the stack to its top."""
GAP_S = 45.0
"""A longer gap between samples interrupts the lines."""

Values = NDArray[np.floating[Any]]

_ARROWS = {1.0: "m-2.5 -4l2.5 -3l2.5 3", -1.0: "m-2.5 4l2.5 3l2.5 -3"}
"""Open arrows away from the line, by column `bound`: the demand is there."""
_UP, _DOWN = "l-4 0l4 -6.5l4 6.5Z", "l-4 0l4 6.5l4 -6.5Z"


def line(
    series: TimeSeries, values: Values, time: Axis, up: Axis, kind: str, *, steps: bool = False
) -> Markup:
    """Draw a line through the samples."""
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


def stack(series: TimeSeries, time: Axis, up: Axis) -> Markup:
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


def moves(made: Iterable[Move], time: Axis, y: float) -> Markup:
    """Mark decisions at a height: filled for more replicas, hollow for fewer."""
    up: list[float] = []
    down: list[float] = []
    for move in made:
        if move.time_s >= time.low:
            (up if move.after > move.before else down).append(move.time_s)
    return tag(
        "g",
        tag("path", class_="move up", d="".join(f"M{time(at):.1f} {y + 2:.1f}{_UP}" for at in up)),
        tag(
            "path",
            class_="move down",
            d="".join(f"M{time(at):.1f} {y - 4:.1f}{_DOWN}" for at in down),
        ),
    )


def target(series: TimeSeries, time: Axis, tail: Axis, per_s: float) -> Markup:
    """Draw the target of latency as it was at each sample."""
    points = _points(series, per_s * series["target_s"], time, tail)
    return tag("path", class_="line target", d=path(points, steps=True))


def late(series: TimeSeries, time: Axis, tail: Axis, per_s: float) -> Markup:
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


def bounds(series: TimeSeries, time: Axis, load: Axis) -> Markup:
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
