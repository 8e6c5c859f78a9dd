"""One service on a page: its promise, its last hour, the decision in words and in what else."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from headroom.api.conditions import Condition
from headroom.console.history import Cost, History
from headroom.console.pages import plots, words
from headroom.console.pages.decision import decision_section
from headroom.console.pages.frame import badge, page
from headroom.console.pages.markup import Markup, joined, tag
from headroom.console.pages.past import moves_section, starts_section
from headroom.console.pages.tables import simple_table
from headroom.console.pages.what_if_form import Asked
from headroom.console.pages.what_if_form import section as what_if
from headroom.console.read_model import Subject
from headroom.console.standing import Standing, troubled
from headroom.controller.report.evaluation import Evaluation


def rendered(one: Subject, asked: Asked, *, now_s: float) -> str:
    """Render the page; `asked` is what the form was filled in with."""
    row = one.standing
    name = f"{row.namespace}/{row.name}"
    trail = joined((tag("span", "/", class_="soft"), tag("span", name, class_="here")))
    history = one.seen.history if one.seen else None
    last = one.seen.last if one.seen else None
    return page(
        f"{name} · Headroom",
        tag(
            "div",
            _heading(row, now_s),
            _figures(row, history.cost if history else None),
            _attention(row.conditions),
            id="head",
            data_live=True,
        ),
        tag(
            "div",
            _course(history, last, now_s),
            tag("div", decision_section(row, last), id="decision", data_live=True, class_="stack"),
            class_="columns",
        ),
        what_if(last, asked, action=f"/services/{row.namespace}/{row.name}"),
        tag(
            "div",
            moves_section(history, now_s),
            starts_section(last),
            id="past",
            data_live=True,
            class_="pair",
        ),
        tag("div", _conditions(row.conditions, now_s), id="conditions", data_live=True),
        trail=trail,
    )


def _heading(row: Standing, now_s: float) -> Markup:
    promise = [
        f"p{row.percentile} below {row.target}",
        f"utilization below {words.percent(row.ceiling)}",
        f"{row.least} to {row.most} replicas",
        f"mode {row.mode}",
    ]
    known = [part for part in promise if "None" not in part]
    decided = "" if row.decided is None else f" · decided {_ago(row.decided, now_s)}"
    return tag(
        "div",
        tag("h1", row.name, " ", badge(row.state)),
        tag("p", " · ".join(known), decided, class_="soft"),
        class_="heading",
    )


def _figures(row: Standing, cost: Cost | None) -> Markup:
    share = f"of {row.current} asked for"
    held = [
        ("Measured", row.measured or words.UNKNOWN, f"p{row.percentile}, target {row.target}"),
        ("Arrivals", words.number(row.arrivals_rps), "requests/s"),
        ("Waiting", words.number(row.waiting), "requests"),
        ("Utilization", words.percent(row.utilization), f"ceiling {words.percent(row.ceiling)}"),
        ("Ready", words.number(row.ready), share),
        ("Accelerators", words.number(row.accelerators), row.accelerator),
    ]
    if cost is not None:
        less = f"accelerator-hours; {words.number(cost.peak_hours)} at the peak"
        held.append((f"Held in {words.span(cost.watched_s)}", words.number(cost.hours), less))
    return tag(
        "dl",
        *(
            tag("div", tag("dt", name), tag("dd", tag("b", value), tag("small", unit)))
            for name, value, unit in held
        ),
        class_="figures",
    )


def _attention(conditions: Sequence[Condition]) -> Markup | None:
    bad = [one for one in troubled(conditions) if one.status != "Unknown"]
    if not bad:
        return None
    items = [tag("li", tag("b", f"{one.type}: {one.reason}"), f" {one.message}") for one in bad]
    return tag("section", tag("h2", "What asks for attention"), tag("ul", *items), class_="alert")


def _course(history: History | None, last: Evaluation | None, now_s: float) -> Markup:
    if history is None or last is None:
        text = "This process has not evaluated the service: history is kept by the one that leads."
        if history is not None:
            text = "There are many services: its next evaluation, in seconds, is shown whole."
        return tag("section", tag("h2", "Last hour"), tag("p", text, class_="empty"))
    course = history.course()
    figure = plots.course_figure(
        course,
        history.moves,
        now_s=now_s,
        target_s=last.policy.latency_target_s,
        percentile=last.policy.latency_percentile,
    )
    data = tag("script", Markup(plots.readings(course)), type="application/json")
    legend = [
        tag("span", tag("i", class_=f"key {state}"), state)
        for state in plots.STATES
        if course[state].size and (course[state] > 0).any()
    ]
    legend += [
        tag("span", "\N{BLACK UP-POINTING TRIANGLE} more asked for"),
        tag("span", "\N{WHITE DOWN-POINTING TRIANGLE} fewer"),
        tag("span", "\N{MULTIPLICATION SIGN} above target"),
    ]
    return tag(
        "section",
        tag("h2", "Last hour, UTC"),
        tag("p", *legend, class_="legend"),
        tag("div", figure, data, id="course", data_live=True, class_="course"),
        tag("p", "Point at the plot, or focus it and use the arrow keys.", class_="reading"),
        class_="card",
    )


def _conditions(conditions: Sequence[Condition], now_s: float) -> Markup:
    rows = [
        tag(
            "tr",
            tag("th", one.type, scope="row"),
            tag("td", one.status.value),
            tag("td", one.reason),
            tag("td", _ago(one.last_transition_time, now_s)),
            tag("td", one.message, class_="text"),
        )
        for one in conditions
    ]
    heads = ("Condition", "Status", "Reason", "Since", "Message")
    table = simple_table(heads, rows, numbers=())
    return tag("section", tag("h2", "Conditions"), table, class_="card")


def _ago(moment: str | None, now_s: float) -> str:
    if not moment:
        return words.UNKNOWN
    then = datetime.fromisoformat(moment)
    return words.ago(then.astimezone(UTC).timestamp(), now_s)
