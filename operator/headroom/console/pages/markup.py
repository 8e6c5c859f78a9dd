"""HTML and SVG as text: names and values escaped, so that nothing a cluster says becomes markup."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

_VOID = frozenset({"input", "link", "meta", "br"})


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Inner = str | Markup | None


def tag(name: str, /, *inner: Inner, **attributes: str | int | float | bool | None) -> Markup:
    """Give an element; plain text within is escaped, None is left out.

    `class_` is class, an underscore within a name a hyphen. True is an attribute without a value,
    False and None are none.
    """
    shown = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{_value(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Markup(f"<{name}{shown}>")
    return Markup(f"<{name}{shown}>{joined(inner)}</{name}>")


def joined(parts: Iterable[Inner]) -> Markup:
    """Put parts one after the other, escaping what is plain text."""
    return Markup(
        "".join(
            part if isinstance(part, Markup) else html.escape(part)
            for part in parts
            if part is not None
        )
    )


def path(points: Sequence[tuple[float, float]], *, steps: bool = False) -> str:
    """Give the SVG path through the points; a gap, where y is not a number, lifts the pen."""
    parts: list[str] = []
    lifted, before_y = True, 0.0
    for x, y in points:
        if y != y:
            lifted = True
            continue
        if lifted:
            parts.append(f"M{pixel(x)} {pixel(y)}")
        elif not steps:
            parts.append(f"L{pixel(x)} {pixel(y)}")
        else:
            parts.append(f"H{pixel(x)}" + (f"V{pixel(y)}" if y != before_y else ""))
        lifted, before_y = False, y
    return "".join(parts)


def pixel(value: float) -> str:
    """Give a coordinate, to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")


def _value(value: str | int | float) -> str:
    if isinstance(value, float):
        return pixel(value)
    return html.escape(str(value))
