"""A table with a row of heads, numbers to the right; it scrolls where it is too wide."""

from __future__ import annotations

from collections.abc import Sequence

from headroom.console.pages.markup import Markup, tag


def simple_table(heads: Sequence[str], rows: Sequence[Markup], *, numbers: Sequence[int]) -> Markup:
    """Give a table; `numbers` are the columns that stand to the right."""
    titles = [
        tag("th", title, scope="col", class_="number" if index in numbers else None)
        for index, title in enumerate(heads)
    ]
    table = tag("table", tag("thead", tag("tr", *titles)), tag("tbody", *rows))
    return tag("div", table, class_="scroll")
