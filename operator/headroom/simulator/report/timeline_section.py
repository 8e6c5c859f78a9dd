"""Renders the timelines of one service as HTML: a figure per run, its values and decisions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headroom.charts import axes
from headroom.charts.markup import Markup, joined, tag
from headroom.simulator.outcome import Outcome
from headroom.simulator.report import number_format, timeline_figure, timeline_readings
from headroom.simulator.report.summary import Summary
from headroom.simulator.report.timeline_layout import Frame, frame

_MOVES = 300
_MESSAGE = 240
_OPEN = 2
"""Timelines shown at first; buttons show the rest."""

_LEGEND = (
    ("ready", "--ready", ""),
    ("warming", "--warming", ""),
    ("unschedulable", "--shortage", "striped"),
    ("draining", "--draining", ""),
    ("desired", "--desired", "rod"),
    ("arrivals", "--load", "rod"),
    ("waiting", "--waiting", "rod"),
    ("latency", "--tail", "rod"),
    ("latency above the target", "--late", "rod"),
)


def section(identity: str, rows: Sequence[Summary], drawn: Sequence[Outcome]) -> Markup:
    """Render the runs of one service on common scales; `rows` has a summary for each."""
    within = frame(drawn)
    by_name = {row.autoscaler: row for row in rows}
    legend = joined(
        tag("span", tag("i", class_=kind or None, style=_swatch(colour, kind)), name)
        for name, colour, kind in _LEGEND
    )
    markers = "▲ scale up, △ scale down; point at a plot or use the arrow keys to read values"
    shown = [
        _timeline(f"{identity}-{index}", outcome, by_name[outcome.autoscaler], within)
        for index, outcome in enumerate(drawn)
    ]
    return joined(
        (
            tag("h3", "Timelines"),
            tag("div", class_="choice", data_shown=str(_OPEN), role="group",
                        aria_label="Timelines shown"),
            tag("div", legend, tag("span", markers), class_="legend"),
            tag("div", *shown, class_="timelines"),
        )
    )  # fmt: skip


def _swatch(colour: str, kind: str) -> str:
    return f"border-color:var({colour})" if kind == "rod" else f"background-color:var({colour})"


def _timeline(identity: str, outcome: Outcome, row: Summary, within: Frame) -> Markup:
    score = outcome.score
    quiet = (
        f"seed {outcome.seed}: {number_format.percent(score.attainment)} within the target, "
        f"{number_format.hours(score.gpu_hours)} GPU-hours, {score.operations} operations, "
        f"{score.mean_ready:.1f} ready on average and {score.peak_ready} at most, "
        f"{axes.compact(score.peak_waiting)} waiting at most"
    )
    if score.peak_unsent:
        quiet += f" at replicas, {axes.compact(score.peak_unsent)} at clients"
    readings = timeline_readings.readings(outcome.timeline)
    return tag(
        "article",
        tag("h4", row.autoscaler),
        tag("div", quiet, class_="reading", aria_live="polite"),
        timeline_figure.figure(outcome, within, identity),
        Markup(f'<script type="application/json">{readings}</script>'),
        _decisions(outcome),
        class_="timeline",
        data_name=outcome.autoscaler,
        data_from=f"{within.start_s:g}",
        data_till=f"{max(within.end_s, within.start_s + 1):g}",
    )


def _decisions(outcome: Outcome) -> Markup:
    if not outcome.moves:
        return tag("p", "No decision changed the number of replicas.", class_="note")
    rows = joined(
        tag("tr", *(tag("td", cell) for cell in cells), data_t=at) for at, cells in _rows(outcome)
    )
    count = number_format.counted(len(outcome.moves), "decision")
    if len(outcome.moves) > _MOVES:
        count += f", the first {_MOVES} of them"
    heads = joined(
        tag("th", name, scope="col") for name in ("time", "replicas", "reason", "message")
    )
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows))
    box = tag("div", table, class_="wide", tabindex="0")
    return tag("details", tag("summary", count), box)


def _rows(outcome: Outcome) -> Iterator[tuple[str, tuple[str, ...]]]:
    for move in outcome.moves[:_MOVES]:
        message = move.message
        if len(message) > _MESSAGE:
            message = message[: _MESSAGE - 1] + "…"
        change = f"{move.before} → {move.after}"
        yield f"{move.time_s:g}", (number_format.clock(move.time_s), change, move.reason, message)
