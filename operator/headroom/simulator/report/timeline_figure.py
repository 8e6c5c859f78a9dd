"""Draws the timeline of one run as SVG: load, replicas by state, queue, latency, decisions."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headroom.charts import axes
from headroom.charts.axes import Axis
from headroom.charts.markup import Markup, joined, tag
from headroom.charts.svg import band, label, marks, path
from headroom.simulator.outcome import Move, Outcome, Series, Timeline
from headroom.simulator.report import decimate, number_format

WIDTH, LEFT, RIGHT = 720.0, 44.0, 8.0
BUCKETS = 320
"""A plot is some 670 pixels wide: every two pixels show the first, least, most and last value."""
TARGETS_SHOWN = 3.0
"""Latencies above this many targets are drawn at the upper edge."""
STATES = ("ready", "warming", "unschedulable", "draining")
"""From bottom to top of the stack."""


@dataclass(frozen=True, slots=True)
class _Panel:
    top: float
    height: float

    @property
    def bottom(self) -> float:
        return self.top + self.height


_LOAD, _REPLICAS, _WAITING, _TAIL = (
    _Panel(18, 80),
    _Panel(126, 110),
    _Panel(264, 64),
    _Panel(356, 96),
)
HEIGHT = 478.0
_UP, _DOWN = "l-3.5 0l3.5 -6l3.5 6Z", "l-3.5 0l3.5 6l3.5 -6Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The scales shared by all figures of one service, for comparison by eye."""

    start_s: float
    end_s: float
    load_rps: float
    replicas: float
    waiting: float


def frame(outcomes: Sequence[Outcome]) -> Frame:
    """Return the frame that fits all these outcomes of one service."""
    timelines = [outcome.timeline for outcome in outcomes]
    return Frame(
        start_s=0.0,
        end_s=max((_highest(timeline.times_s) for timeline in timelines), default=0.0),
        load_rps=max((_highest(timeline.arrival_rps) for timeline in timelines), default=0.0),
        replicas=max(
            (max(_highest(_stacked(c)[-1]), _highest(c.desired)) for c in timelines), default=0.0
        ),
        waiting=max((_highest(_queued(timeline)) for timeline in timelines), default=0.0),
    )


def figure(outcome: Outcome, within: Frame, identity: str) -> Markup:
    """Render one run; `identity` makes its SVG ids unique on the page."""
    timeline = outcome.timeline
    time = axes.time(
        within.start_s, within.end_s, LEFT, WIDTH - RIGHT, count=8, label=number_format.clock
    )
    load = axes.linear(1.05 * within.load_rps, _LOAD.bottom, _LOAD.top, count=3)
    replicas = axes.linear(1.02 * within.replicas, _REPLICAS.bottom, _REPLICAS.top + 12, whole=True)
    waiting = axes.counts(within.waiting, _WAITING.bottom, _WAITING.top)
    unit, per_s = _tail_unit(outcome.target_s)
    shown = per_s * TARGETS_SHOWN * outcome.target_s
    tail = axes.linear(shown, _TAIL.bottom, _TAIL.top, count=3)
    target = number_format.seconds(outcome.target_s)
    title = f"p{100 * outcome.percentile:g}, {unit} (target {target})"
    scale = " (logarithmic)" if waiting.warp is math.log1p else ""
    hidden = ", those at clients included" if _highest(timeline.unsent) else ""
    return tag(
        "svg",
        _panel(_LOAD, "arrivals, requests per second", load, time),
        _line(timeline.times_s, timeline.arrival_rps, time, load, "load"),
        _panel(_REPLICAS, "replicas", replicas, time),
        _replicas(timeline, time, replicas, identity),
        _moves(outcome, time),
        _panel(_WAITING, f"waiting, requests{hidden}{scale}", waiting, time),
        _line(timeline.times_s, _queued(timeline), time, waiting, "waiting"),
        _panel(_TAIL, title, tail, time),
        _tail(outcome, time, tail, identity),
        _clock(time),
        tag("line", class_="cursor", x1=0, x2=0, y1=_LOAD.top, y2=_TAIL.bottom),
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        role="img",
        aria_label=f"Timeline of {outcome.autoscaler}: arrivals, replicas, waiting, latency",
    )


def _queued(timeline: Timeline) -> Series:
    """Return the requests that wait, at replicas and at clients."""
    return timeline.waiting + timeline.unsent


def readings(timeline: Timeline) -> str:
    """Return the values that the page shows under the pointer, as JSON: one array per quantity.

    Latency and waiting are the maximum of each of some 300 intervals, replicas the value at its
    end; null is unknown, -1 in p95_ms is never answered.
    """
    worst_ms = [_milliseconds(value) for value in decimate.most(timeline.p95_s, BUCKETS).tolist()]
    data: dict[str, list[float | None]] = {
        "t": [round(value, 1) for value in decimate.last(timeline.times_s, BUCKETS).tolist()],
        "load": [_short(value) for value in decimate.most(timeline.arrival_rps, BUCKETS).tolist()],
        "waiting": [_short(value) for value in decimate.most(_queued(timeline), BUCKETS).tolist()],
        "p95_ms": worst_ms,
    }
    for name in ("desired", *STATES):
        values = decimate.last(getattr(timeline, name), BUCKETS).tolist()
        data[name] = [_short(value) for value in values]
    return json.dumps(data, separators=(",", ":"), allow_nan=False)


def _panel(panel: _Panel, title: str, up: Axis, time: Axis) -> Markup:
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
    stacked = _stacked(timeline)
    kept = decimate.turns(np.vstack([stacked, timeline.desired]), BUCKETS)
    times = timeline.times_s[kept]
    edges = [_points(times, level[kept], time, up) for level in (0 * stacked[0], *stacked)]
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
    ups = [(time(move.time_s), _REPLICAS.top + 7) for move in outcome.moves if _is_up(move)]
    downs = [(time(move.time_s), _REPLICAS.top + 1) for move in outcome.moves if not _is_up(move)]
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
    late = {"x": left, "y": _TAIL.top - 2, "width": right - left, "height": target_px - _TAIL.top}
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
                d=marks([(time(at), _TAIL.top) for at in beyond], "v-5"),
            ),
        )
    )


def _tail_unit(target_s: float) -> tuple[str, float]:
    """Return the unit of the latency axis, and its number per second."""
    return ("seconds", 1.0) if target_s >= 1 else ("milliseconds", 1000.0)


def _clock(time: Axis) -> Markup:
    times = [
        label(time(value), _TAIL.bottom + 14, name, class_="tick middle")
        for value, name in time.ticks
    ]
    title = label(time.end_px, _TAIL.bottom + 25, "virtual time, h:mm", class_="tick end")
    return joined((*times, title))


def _stacked(timeline: Timeline) -> Series:
    """Return the tops of the states' layers, [states, samples]."""
    return np.cumsum([getattr(timeline, name) for name in STATES], axis=0)


def _points(times: Series, values: Series, time: Axis, up: Axis) -> list[tuple[float, float]]:
    return [
        (time(at), math.nan if math.isnan(value) else up(value))
        for at, value in zip(times.tolist(), values.tolist(), strict=True)
    ]


def _highest(values: Series) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if known.size else 0.0


def _milliseconds(value_s: float) -> float | None:
    if math.isinf(value_s):
        return -1
    return _short(1000 * value_s)


def _short(value: float) -> float | None:
    """Return a value rounded to three digits."""
    if math.isnan(value):
        return None
    short = float(f"{value:.3g}")
    return int(short) if short.is_integer() else short
