"""The page of all services: SLO target, state, replicas, accelerators; a hundred per page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headroom.charts.markup import Inner, Markup, joined, tag
from headroom.console.listing import LONGEST_SEARCH, PER_PAGE, Listing, Query
from headroom.console.pages import formatting as fmt
from headroom.console.pages.frame import badge, page
from headroom.console.pages.service_table import table


def rendered(seen: Listing, *, now_s: float) -> str:
    """Render the page."""
    return page(
        "Services · Headroom",
        tag("h1", "Services", class_="hidden"),
        _tools(seen),
        tag("div", _summary(seen), table(seen, now_s), _pages(seen), id="services", data_live=True),
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
