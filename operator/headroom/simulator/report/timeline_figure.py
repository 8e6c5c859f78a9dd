"""Draws the timeline of one run as SVG: load, replicas by state, queue, latency, decisions."""

from __future__ import annotations

import math

import numpy as np

from headroom.charts import axes
from headroom.charts.axes import Axis
from headroom.charts.markup import Markup, joined, tag
from headroom.charts.svg import band, label, marks, path
from headroom.simulator.outcome import Move, Outcome, Series, Timeline
from headroom.simulator.report import decimate, number_format
from headroom.simulator.report.timeline_layout import (
    BUCKETS,
    HEIGHT,
    LEFT,
    LOAD,
    REPLICAS,
    RIGHT,
    STATES,
    TAIL,
    TARGETS_SHOWN,
    WAITING,
    WIDTH,
    Frame,
    Panel,
    highest,
    queued,
    stacked,
)

_UP, _DOWN = "l-3.5 0l3.5 -6l3.5 6Z", "l-3.5 0l3.5 6l3.5 -6Z"


def figure(outcome: Outcome, within: Frame, identity: str) -> Markup:
    """Render one run; `identity` makes its SVG ids unique on the page."""
    timeline = outcome.timeline
    time = axes.time(
        within.start_s, within.end_s, LEFT, WIDTH - RIGHT, count=8, label=number_format.clock
    )
    load = axes.linear(1.05 * within.load_rps, LOAD.bottom, LOAD.top, count=3)
    replicas = axes.linear(1.02 * within.replicas, REPLICAS.bottom, REPLICAS.top + 12, whole=True)
    waiting = axes.counts(within.waiting, WAITING.bottom, WAITING.top)
    unit, per_s = _tail_unit(outcome.target_s)
    shown = per_s * TARGETS_SHOWN * outcome.target_s
    tail = axes.linear(shown, TAIL.bottom, TAIL.top, count=3)
    target = number_format.seconds(outcome.target_s)
    title = f"p{100 * outcome.percentile:g}, {unit} (target {target})"
    scale = " (logarithmic)" if waiting.warp is math.log1p else ""
    hidden = ", those at clients included" if highest(timeline.unsent) else ""
    return tag(
        "svg",
        _panel(LOAD, "arrivals, requests per second", load, time),
        _line(timeline.times_s, timeline.arrival_rps, time, load, "load"),
        _panel(REPLICAS, "replicas", replicas, time),
        _replicas(timeline, time, replicas, identity),
        _moves(outcome, time),
        _panel(WAITING, f"waiting, requests{hidden}{scale}", waiting, time),
        _line(timeline.times_s, queued(timeline), time, waiting, "waiting"),
        _panel(TAIL, title, tail, time),
        _tail(outcome, time, tail, identity),
        _clock(time),
        tag("line", class_="cursor", x1=0, x2=0, y1=LOAD.top, y2=TAIL.bottom),
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        role="img",
        aria_label=f"Timeline of {outcome.autoscaler}: arrivals, replicas, waiting, latency",
    )


def _panel(panel: Panel, title: str, up: Axis, time: Axis) -> Markup:
    left, right = time.start_px, time.end_px
    rules = [
        part
        for value, name in up.ticks
        for part in (
            tag("line", class_="rule", x1=left, x2=right, y1=up(value), y2=up(value)),
            label(left - 5, up(value) + 3.5, name, class_="tick end"),
        )
    ]
    return joined((*rules, label(left, panel.top - 6, title, class_="title")))


def _line(times: Series, values: Series, time: Axis, up: Axis, kind: str) -> Markup:
    kept = decimate.extremes(values, BUCKETS)
    points = _points(times[kept], values[kept], time, up)
    return tag("path", class_=f"line {kind}", d=path(points))


def _replicas(timeline: Timeline, time: Axis, up: Axis, identity: str) -> Markup:
    tops = stacked(timeline)
    kept = decimate.turns(np.vstack([tops, timeline.desired]), BUCKETS)
    times = timeline.times_s[kept]
    edges = [_points(times, level[kept], time, up) for level in (0 * tops[0], *tops)]
    layers = [
        tag(
            "path",
            class_=f"state {name}",
            d=band(edges[index + 1], edges[index]),
            style=f"fill:url(#shortage-{identity})" if name == "unschedulable" else None,
        )
        for index, name in enumerate(STATES)
        if getattr(timeline, name).any()
    ]
    desired = path(_points(times, timeline.desired[kept], time, up), steps=True)
    return joined((_hatching(identity), *layers, tag("path", class_="desired", d=desired)))


def _hatching(identity: str) -> Markup:
    """Return a pattern that marks a shortage without relying on colour."""
    pattern = tag(
        "pattern",
        tag("rect", class_="shortage", width=5, height=5),
        tag("path", class_="stripe", d="M-1 6L6 -1M-1 1L1 -1M4 6L6 4"),
        id=f"shortage-{identity}", width=5, height=5,
        patternUnits="userSpaceOnUse",
    )  # fmt: skip
    return tag("defs", pattern)


def _moves(outcome: Outcome, time: Axis) -> Markup:
    ups = [(time(move.time_s), REPLICAS.top + 7) for move in outcome.moves if _is_up(move)]
    downs = [(time(move.time_s), REPLICAS.top + 1) for move in outcome.moves if not _is_up(move)]
    return joined(
        tag("path", class_=f"move {kind}", d=marks(points, shape))
        for kind, points, shape in (("up", ups, _UP), ("down", downs, _DOWN))
        if points
    )


def _is_up(move: Move) -> bool:
    return move.after > move.before


def _tail(outcome: Outcome, time: Axis, up: Axis, identity: str) -> Markup:
    timeline, per_s = outcome.timeline, _tail_unit(outcome.target_s)[1]
    target_px = up(per_s * outcome.target_s)
    left, right = time.start_px, time.end_px
    kept = decimate.extremes(timeline.p95_s, BUCKETS)
    times, tails_s = timeline.times_s[kept], timeline.p95_s[kept]
    d = path(_points(times, per_s * tails_s, time, up))
    beyond = times[tails_s > TARGETS_SHOWN * outcome.target_s].tolist()
    late = {"x": left, "y": TAIL.top - 2, "width": right - left, "height": target_px - TAIL.top}
    return joined(
        (
            tag("clipPath", tag("rect", **late), id=f"late-{identity}"),
            tag("rect", class_="late-zone", **late),
            tag("path", class_="line tail", d=d),
            tag("path", class_="line late", d=d, clip_path=f"url(#late-{identity})"),
            tag("line", class_="target", x1=left, x2=right, y1=target_px, y2=target_px),
            label(right - 3, target_px - 4, "target", class_="tick end target-name"),
            tag(
                "path",
                class_="beyond",
                d=marks([(time(at), TAIL.top) for at in beyond], "v-5"),
            ),
        )
    )


def _tail_unit(target_s: float) -> tuple[str, float]:
    """Return the unit of the latency axis, and its number per second."""
    return ("seconds", 1.0) if target_s >= 1 else ("milliseconds", 1000.0)


def _clock(time: Axis) -> Markup:
    times = [
        label(time(value), TAIL.bottom + 14, name, class_="tick middle")
        for value, name in time.ticks
    ]
    title = label(time.end_px, TAIL.bottom + 25, "virtual time, h:mm", class_="tick end")
    return joined((*times, title))


def _points(times: Series, values: Series, time: Axis, up: Axis) -> list[tuple[float, float]]:
    return [
        (time(at), math.nan if math.isnan(value) else up(value))
        for at, value in zip(times.tolist(), values.tolist(), strict=True)
    ]
