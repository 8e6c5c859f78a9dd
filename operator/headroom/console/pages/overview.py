"""The page of all services: SLO target, state, replicas, accelerators; a hundred per page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headroom.charts.markup import Inner, Markup, joined, tag
from headroom.console.listing import LONGEST_SEARCH, PER_PAGE, Listing, Query
from headroom.console.pages import formatting as fmt
from headroom.console.pages.frame import badge, page
from headroom.console.pages.sparkline import sparkline
from headroom.console.read_model import ServiceEntry
from headroom.console.service_state import State
from headroom.console.summary import ServiceSummary


def rendered(seen: Listing, *, now_s: float) -> str:
    """Render the page."""
    return page(
        "Services · Headroom",
        tag("h1", "Services", class_="hidden"),
        _tools(seen),
        tag(
            "div", _summary(seen), _table(seen, now_s), _pages(seen), id="services", data_live=True
        ),
    )


def _tools(seen: Listing) -> Markup:
    query = seen.query
    kept = {
        "state": query.state.lower() if query.state else None,
        "namespace": query.namespace,
        "sort": None if query.order == "attention" else query.order,
    }
    hidden = [
        tag("input", type="hidden", name=name, value=value) for name, value in kept.items() if value
    ]
    search = tag(
        "input",
        type="search",
        name="q",
        value=query.search,
        placeholder="Search namespace/name",
        aria_label="Search services",
        id="search",
        autocomplete="off",
        spellcheck="false",
        maxlength=LONGEST_SEARCH,
    )
    return tag("form", search, *hidden, tag("button", "Search"), class_="tools", role="search")


def _summary(seen: Listing) -> Markup:
    query, total = seen.query, sum(seen.states.values())
    chips: list[Inner] = [
        _chip("All", total, replace(query, state=None, number=1), query.state is None)
    ]
    chips += [
        _chip(badge(state), number, replace(query, state=state, number=1), query.state is state)
        for state, number in seen.states.items()
    ]
    held = [
        joined((tag("b", fmt.number(number)), f" {name}"))
        for name, number in seen.accelerators.items()
    ]
    cost = tag("p", "in use: ", *_listed(held), class_="held") if held else None
    return tag("div", tag("nav", *chips, class_="chips", aria_label="States"), cost, class_="sums")


def _listed(parts: Sequence[Inner]) -> list[Inner]:
    return [each for part in parts for each in (", ", part)][1:]


def _chip(name: Inner, number: int, query: Query, current: bool) -> Markup:
    return tag(
        "a",
        name,
        tag("b", fmt.number(number)),
        href=query.address(),
        aria_current="true" if current else None,
    )


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


def _table(seen: Listing, now_s: float) -> Markup:
    if not seen.rows:
        return tag("p", _nothing(seen.query), class_="empty")
    heads = [_head(seen.query, *head) for head in _HEADS]
    rows = [_row(one, now_s) for one in seen.rows]
    caption = f"{fmt.counted(seen.found, 'service')}, sorted by {seen.query.order}"
    table = tag(
        "table",
        tag("caption", caption, class_="hidden"),
        tag("thead", tag("tr", *heads)),
        tag("tbody", *rows),
        class_="services",
    )
    return tag("div", table, class_="scroll")


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
    return tag(
        "tr",
        tag("td", badge(row.state), title=row.why),
        tag("th", link, scope="row"),
        tag("td", _target(row), class_="soft"),
        tag(
            "td",
            row.latency or fmt.UNKNOWN,
            class_="number" + (" bad" if missed else ""),
            data_name="latency",
        ),
        tag(
            "td",
            fmt.arrivals(row.arrivals_rps, row.demand),
            class_="number",
            title=None if row.demand is None else row.demand.sentence,
            data_name="arrivals/s",
        ),
        tag("td", spark, class_="wide"),
        tag("td", fmt.number(row.waiting), class_="number", data_name="waiting"),
        tag("td", _utilization(row), class_="number", data_name="utilization"),
        tag("td", _replicas(row), class_="number", data_name="ready"),
        tag("td", fmt.number(row.accelerators), class_="number", data_name="accelerators"),
        tag("td", tag("div", _because(row)), class_="wide soft because", title=row.message),
    )


def _because(row: ServiceSummary) -> str:
    """Return what needs attention, else the reason of the number of replicas."""
    return row.why if row.state.needs_attention else row.reason or fmt.UNKNOWN


def _target(row: ServiceSummary) -> str:
    if row.target is None:
        return fmt.UNKNOWN
    return f"p{row.percentile or fmt.UNKNOWN} < {row.target}"


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


def _pages(seen: Listing) -> Markup | None:
    if seen.pages == 1:
        return None
    number, query = seen.query.number, seen.query
    first = (number - 1) * PER_PAGE + 1
    span = f"{first}\N{EN DASH}{first + len(seen.rows) - 1} of {fmt.number(seen.found)}"
    before = replace(query, number=number - 1).address() if number > 1 else None
    after = replace(query, number=number + 1).address() if number < seen.pages else None
    return tag(
        "nav",
        tag("a", "Previous", href=before, rel="prev", aria_disabled="true" if not before else None),
        tag("span", span),
        tag("a", "Next", href=after, rel="next", aria_disabled="true" if not after else None),
        class_="pages",
        aria_label="Pages",
    )
