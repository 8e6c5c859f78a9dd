"""The table of all services: a row each, with its targets, needs and replicas. Pure."""

from __future__ import annotations

from dataclasses import replace

from headroom.charts.markup import Markup, joined, tag
from headroom.console.listing import Listing, Query
from headroom.console.pages import formatting as fmt
from headroom.console.pages.frame import badge
from headroom.console.pages.sparkline import sparkline
from headroom.console.read_model import ServiceEntry
from headroom.console.service_state import State
from headroom.console.summary import ServiceSummary

_HEADS: tuple[tuple[str, str, str], ...] = (
    ("State", "attention", ""),
    ("Service", "name", ""),
    ("Target", "", ""),
    ("Latency", "", "number"),
    ("Arrivals/s", "arrivals", "number"),
    ("Last hour", "", "wide"),
    ("Waiting", "waiting", "number"),
    ("Utilization", "utilization", "number"),
    ("Ready", "", "number"),
    ("Accelerators", "accelerators", "number"),
    ("Because", "", "wide"),
)


def table(seen: Listing, now_s: float) -> Markup:
    """Return a row for each service of the page, or why there is none."""
    if not seen.rows:
        return tag("p", _nothing(seen.query), class_="empty")
    heads = [_head(seen.query, *head) for head in _HEADS]
    rows = [_row(one, now_s) for one in seen.rows]
    caption = f"{fmt.counted(seen.found, 'service')}, sorted by {seen.query.order}"
    rendered = tag(
        "table",
        tag("caption", caption, class_="hidden"),
        tag("thead", tag("tr", *heads)),
        tag("tbody", *rows),
        class_="services",
    )
    return tag("div", rendered, class_="scroll")


def _nothing(query: Query) -> str:
    if query.search or query.state or query.namespace:
        return "No service matches. Clear the search, or choose All."
    return "There is no InferenceService: create one with kubectl apply."


def _head(query: Query, title: str, order: str, kind: str) -> Markup:
    if not order:
        return tag("th", title, scope="col", class_=kind or None)
    link = tag("a", title, href=replace(query, order=order, number=1).address())
    current = query.order == order
    way = "ascending" if order == "name" else "descending"
    return tag("th", link, scope="col", class_=kind or None, aria_sort=way if current else None)


def _row(one: ServiceEntry, now_s: float) -> Markup:
    row = one.summary
    name = joined((tag("span", f"{row.namespace}/", class_="soft"), row.name))
    link = tag("a", name, href=f"/services/{row.namespace}/{row.name}", class_="open")
    missed = row.state is State.ABOVE_TARGET
    spark = None if one.history is None else sparkline(one.history.samples.series(), now_s=now_s)
    known: dict[str, object] = {"latency": row.latency or _tokens(row) or None}
    known |= {"arrivals/s": row.arrivals_rps, "waiting": row.waiting}
    known |= {"utilization": row.utilization, "accelerators": row.accelerators}
    names = {name: None if value is None else name for name, value in known.items()}
    return tag(
        "tr",
        tag("td", badge(row.state), title=row.why),
        tag("th", link, scope="row"),
        tag("td", *_lines(_targets(row)), class_="soft"),
        tag(
            "td",
            *_lines(_measured(row)),
            class_="number" + (" bad" if missed else ""),
            data_name=names["latency"],
        ),
        tag(
            "td",
            fmt.arrivals(row.arrivals_rps, row.demand),
            class_="number",
            title=None if row.demand is None else row.demand.sentence,
            data_name=names["arrivals/s"],
        ),
        tag("td", spark, class_="wide"),
        tag("td", fmt.number(row.waiting), class_="number", data_name=names["waiting"]),
        tag("td", _utilization(row), class_="number", data_name=names["utilization"]),
        tag("td", _replicas(row), class_="number", data_name="ready"),
        tag("td", fmt.number(row.accelerators), class_="number", data_name=names["accelerators"]),
        tag("td", tag("div", _because(row)), class_="wide soft because", title=row.message),
        class_="attention" if row.state.needs_attention else None,
    )


def _because(row: ServiceSummary) -> str:
    """Return the condition that needs attention, else the reason of the number of replicas."""
    return row.why if row.state.needs_attention else row.reason or fmt.UNKNOWN


def _targets(row: ServiceSummary) -> list[str]:
    """Return the target of the latency, and those on tokens."""
    found = [
        f"{name} {fmt.promise(one)[1].replace(', target', ' <')}" for name, one in _tokens(row)
    ]
    if row.target is not None:
        found.insert(0, f"p{row.percentile or fmt.UNKNOWN} < {row.target}")
    return found or [fmt.UNKNOWN]


def _measured(row: ServiceSummary) -> list[str]:
    """Return the measured value of each target, in the same order."""
    found = [fmt.promise(one)[0] for _, one in _tokens(row)]
    if row.target is not None or not found:
        found.insert(0, row.latency or fmt.UNKNOWN)
    return found


def _tokens(row: ServiceSummary) -> list[tuple[str, str]]:
    both = (("TTFT", row.first_token), ("TPOT", row.output_token))
    return [(name, promise) for name, promise in both if promise is not None]


def _lines(texts: list[str]) -> list[str | Markup]:
    return [texts[0]] if len(texts) == 1 else [tag("div", text) for text in texts]


def _utilization(row: ServiceSummary) -> Markup:
    """Return the number and a bar, with the ceiling as a stroke."""
    if row.utilization is None:
        return joined((fmt.UNKNOWN,))
    ceiling = 0.8 if row.ceiling is None else row.ceiling
    over = " over" if row.utilization > ceiling else ""
    bar = tag(
        "svg",
        tag("rect", class_="rail", width=48, height=6, y=3),
        tag("rect", class_=f"fill{over}", width=48 * min(1.0, row.utilization), height=6, y=3),
        tag("rect", class_="ceiling", x=48 * ceiling - 0.75, width=1.5, height=12),
        viewBox="0 0 48 12",
        class_="bar",
        aria_hidden="true",
    )
    return joined((bar, fmt.percent(row.utilization)))


def _replicas(row: ServiceSummary) -> Markup:
    pending = [tag("small", f" +{number} {word}") for word, number in row.pending.items()]
    return joined((f"{row.ready}/{row.current}", *pending))
