"""Renders outcomes as one offline HTML page: scores, misses against cost, timelines of runs.

The file is self-contained: it fetches no font, script or picture. The same outcomes give the same
bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby

from headroom.charts import axes
from headroom.charts.markup import Markup, joined, tag
from headroom.simulator.outcome import Outcome
from headroom.simulator.report import front_figure, number_format, timeline_section
from headroom.simulator.report.comparison import CLAIRVOYANT, OURS, Estimate, family, is_bound
from headroom.simulator.report.summary import Summary, summarized

TIMELINES = 24
"""Maximum timelines on the page, some 70 kB each; the JSON report has all."""


def page(outcomes: Sequence[Outcome], *, title: str = "Headroom simulation") -> str:
    """Render the outcomes as an HTML document; timelines show each autoscaler's first seed."""
    summaries = summarized(outcomes)
    services = [
        (key, list(rows))
        for key, rows in groupby(summaries, key=lambda row: (row.scenario, row.service))
    ]
    drawn = _drawn(outcomes, summaries)
    sections = [
        _section(f"s{index}", rows, [one for one in drawn if (one.scenario, one.service) == key])
        for index, (key, rows) in enumerate(services)
    ]
    links = [(f"s{index}", f"{key[0]}: {key[1]}") for index, (key, _) in enumerate(services)]
    body = joined((_head(title, summaries, links), *sections, _foot(summaries, len(drawn))))
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{tag('title', title)}\n<style>\n{_resource('page.css')}</style></head>\n"
        f"<body>\n{body}<script>\n{_resource('page.js')}</script>\n</body>\n</html>\n"
    )


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _drawn(outcomes: Sequence[Outcome], summaries: Sequence[Summary]) -> list[Outcome]:
    """Return the first seed of each: Headroom, the clairvoyant, the front, then the rest."""
    by_key = {(o.scenario, o.service, o.autoscaler, o.seed): o for o in outcomes}

    def rank(row: Summary) -> tuple[bool, bool, bool]:
        name = family(row.autoscaler)
        return name != OURS, name != CLAIRVOYANT, not row.on_front

    ordered = sorted(summaries, key=rank)[:TIMELINES]
    return [by_key[o.scenario, o.service, o.autoscaler, o.seeds[0]] for o in ordered]


def _head(title: str, summaries: Sequence[Summary], links: Sequence[tuple[str, str]]) -> Markup:
    scenarios = len({row.scenario for row in summaries})
    autoscalers = len({row.autoscaler for row in summaries})
    seeds = max((len(row.seeds) for row in summaries), default=0)
    scope = ", ".join(
        (
            number_format.counted(scenarios, "scenario"),
            number_format.counted(autoscalers, "autoscaler"),
            number_format.counted(seeds, "seed"),
        )
    )
    nav = [tag("a", name, href=f"#{target}") for target, name in links]
    return joined(
        (
            tag("h1", title),
            tag("p", scope, class_="soft"),
            tag("nav", *nav, aria_label="Services") if len(links) > 1 else None,
        )
    )


def _section(identity: str, rows: Sequence[Summary], drawn: Sequence[Outcome]) -> Markup:
    first = rows[0]
    promise = (
        f"p{100 * first.percentile:g} within {number_format.seconds(first.target_s)}, "
        f"{axes.compact(first.requests.mean)} requests"
    )
    note = (
        "A lost, late, refused or expired request is a miss. Bounds know the arrivals in advance; "
        "the front is drawn through the other autoscalers."
    )
    if any(len(row.seeds) > 1 for row in rows):
        note += " ± and bars: 95 % interval of the mean over seeds (Student's t)."
    return tag(
        "section",
        tag("h2", f"{first.scenario}: {first.service}"),
        tag("p", promise, class_="soft"),
        tag("h3", "Scores"),
        _score_table(rows),
        tag("p", note, class_="note"),
        tag("h3", "Misses against cost"),
        tag("figure", front_figure.figure(rows), class_="against"),
        timeline_section.section(identity, rows, drawn) if drawn else None,
        id=identity,
        class_="service",
    )


def _foot(summaries: Sequence[Summary], drawn: int) -> Markup:
    left_out = len(summaries) - drawn
    note = (
        "Lines keep all peaks: the first, least, most and last sample of every interval are drawn."
        " Latencies above three times the target are drawn at the upper edge."
    )
    if left_out:
        note += (
            f" {number_format.counted(left_out, 'timeline')} not shown here: see the JSON report."
        )
    return tag("footer", tag("p", note))


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


def _score_table(rows: Sequence[Summary]) -> Markup:
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
