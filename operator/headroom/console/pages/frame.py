"""The parts of every page: head, state marks, header, keys. Nothing is loaded from other hosts."""

from __future__ import annotations

from collections.abc import Sequence

from headroom.charts.markup import Inner, Markup, joined, tag
from headroom.console.service_state import State

SHAPES = {
    State.BLOCKED: "M2 2l8 8M10 2l-8 8",
    State.DOWN: "M1.5 3h9L6 11Z",
    State.ABOVE_TARGET: "M6 1l5 9.5H1Z",
    State.BROKEN: "M6 1.5v5.5M6 9.6v.8",
    State.NO_CAPACITY: "M6 1l5 5-5 5-5-5Z",
    State.NO_METRICS: "M4 4a2 2 0 1 1 2 2.4V8M6 10v.6",
    State.SLO_INFEASIBLE: "M6 1.5a4.5 4.5 0 1 0 .01 0ZM3 9l6-6",
    State.WARMING_UP: "M6 1.5a4.5 4.5 0 1 0 .01 0ZM6 3.4V6l1.8 1.2",
    State.PENDING: "M3.5 6h5",
    State.NO_TRAFFIC: "M6 2.5a3.5 3.5 0 1 0 .01 0Z",
    State.HEALTHY: "M1.8 6.4l2.9 2.9 5.6-6",
}
"""A shape for each state, 12 by 12: colour is never the only sign."""
_FILLED = frozenset({State.DOWN, State.ABOVE_TARGET, State.NO_CAPACITY})

KEYS = (
    ("/", "search"),
    ("j k", "next and previous service"),
    ("Enter", "open it"),
    ("n p", "next and previous page"),
    ("u", "back to all services"),
    ("\N{LEFTWARDS ARROW} \N{RIGHTWARDS ARROW}", "read values of a focused plot"),
    ("r", "pause or resume refreshing"),
    ("?", "show the keys"),
)


def page(title: str, *body: Inner, trail: Inner = None) -> str:
    """Return a whole document; `trail` follows the name in the header."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("link", rel="stylesheet", href="/static/console.css"),
        tag("script", src="/static/console.js", defer=True),
    )
    top = tag(
        "header",
        tag("a", "Headroom", href="/", class_="brand"),
        trail,
        tag("span", class_="grow"),
        tag("span", "live", id="pulse", class_="pulse", role="status"),
        class_="top",
    )
    skip = tag("a", "Skip to the content", href="#main", class_="skip")
    content = tag("main", *body, id="main", tabindex=-1)
    everything = tag("body", skip, _sprite(), top, content, _keys())
    return f'<!doctype html>\n<html lang="en">{head}{everything}</html>\n'


def badge(state: State) -> Markup:
    """Return a state as mark and word."""
    use = tag("use", href=f"#s-{state.lower()}")
    mark = tag("svg", use, class_="mark", viewBox="0 0 12 12", aria_hidden="true")
    return tag("span", mark, state.value, class_=f"state-word {state.lower()}")


def simple_table(heads: Sequence[str], rows: Sequence[Markup], *, numbers: Sequence[int]) -> Markup:
    """Return a table that scrolls where it is too wide; `numbers` are the right-aligned columns."""
    titles = [
        tag("th", title, scope="col", class_="number" if index in numbers else None)
        for index, title in enumerate(heads)
    ]
    table = tag("table", tag("thead", tag("tr", *titles)), tag("tbody", *rows))
    return tag("div", table, class_="scroll")


def refusal(status: int, message: str) -> str:
    """Return a page with an error."""
    return page(f"{status} · Headroom", tag("h1", str(status)), tag("p", message))


def _sprite() -> Markup:
    symbols = [
        tag(
            "symbol",
            tag("path", d=shape, class_="mark-solid" if state in _FILLED else "mark-line"),
            id=f"s-{state.lower()}",
            viewBox="0 0 12 12",
        )
        for state, shape in SHAPES.items()
    ]
    return tag("svg", *symbols, class_="sprite", aria_hidden="true")


def _keys() -> Markup:
    rows = [joined((tag("dt", tag("kbd", key)), tag("dd", meaning))) for key, meaning in KEYS]
    close = tag("form", tag("button", "Close"), method="dialog")
    return tag("dialog", tag("h2", "Keys"), tag("dl", *rows), close, id="keys")
