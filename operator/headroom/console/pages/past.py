"""The past of a service on its page: decisions and cold starts."""

from __future__ import annotations

from headroom.charts.markup import Inner, Markup, tag
from headroom.console.cold_starts import Start, starts
from headroom.console.history import History
from headroom.console.pages import formatting as fmt
from headroom.console.pages.frame import simple_table
from headroom.controller.report.evaluation import Evaluation


def moves_section(history: History | None, now_s: float) -> Markup:
    """Render the decisions that changed the number of replicas, the newest first."""
    moves = list(reversed(history.moves)) if history else []
    rows = [
        tag(
            "tr",
            tag(
                "td",
                fmt.clock(one.time_s),
                tag("small", f" {fmt.ago(one.time_s, now_s)}"),
            ),
            tag("td", _arrow(one.before, one.after), class_="number"),
            tag("td", one.reason),
            tag("td", one.message, class_="text"),
        )
        for one in moves
    ]
    body: Inner = tag("p", "No change since this process started.", class_="empty")
    if rows:
        body = simple_table(("When, UTC", "Replicas", "Reason", "Message"), rows, numbers=(1,))
    return tag("section", tag("h2", "Decisions"), body, class_="card")


def _arrow(before: int, after: int) -> str:
    return f"{before} \N{RIGHTWARDS ARROW} {after}"


def starts_section(last: Evaluation | None) -> Markup:
    """Render the start of each replica, phase by phase."""
    found = starts(last) if last else []
    p90_s = last.decision.cold_start_s if last else None
    rows = [_start(one) for one in found]
    known = f"p90 of the measured starts, from node to ready: {fmt.seconds(p90_s)}."
    heads = ("Replica", "State", "To node", "To running", "Model", "To ready", "Total")
    body: Inner = tag("p", "There is no replica.", class_="empty")
    if rows:
        body = simple_table(heads, rows, numbers=(2, 3, 4, 5, 6))
    return tag(
        "section", tag("h2", "Cold starts"), body, tag("p", known, class_="note"), class_="card"
    )


def _start(one: Start) -> Markup:
    return tag(
        "tr",
        tag("th", one.pod, scope="row"),
        tag("td", one.state, title=one.detail or None),
        *(
            tag("td", fmt.seconds(value), class_="number")
            for value in (
                *(one.scheduling_s, one.pulling_s, one.fetching_s, one.warming_s),
                one.total_s,
            )
        ),
    )
