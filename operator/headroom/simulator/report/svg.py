"""Elements of SVG and HTML as text: names and values escaped, coordinates to a tenth of a pixel."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

Points = Sequence[tuple[float, float]]


def element(name: str, *inner: str, **attributes: str | float | None) -> str:
    """Return an element around what is markup already; an attribute None is left out.

    `class_` is class, and an underscore within a name a hyphen.
    """
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{shown}>{''.join(inner)}</{name}>"


def text(content: str) -> str:
    """Return text as markup that shows it."""
    return html.escape(content, quote=False)


def label(x: float, y: float, content: str, **attributes: str | float | None) -> str:
    """Return text at a place."""
    return element("text", text(content), x=x, y=y, **attributes)


def line(points: Points) -> str:
    """Return the path through the points; a point that is not a number lifts the pen."""
    parts: list[str] = []
    lifted = True
    for x, y in points:
        if math.isnan(y):
            lifted = True
            continue
        parts.append(f"{'M' if lifted else 'L'}{pixel(x)} {pixel(y)}")
        lifted = False
    return "".join(parts)


def steps(points: Points) -> str:
    """Return the path that keeps each value until the next point."""
    if not points:
        return ""
    (x, y), *rest = points
    parts = [f"M{pixel(x)} {pixel(y)}"]
    for after_x, after_y in rest:
        parts.append(f"H{pixel(after_x)}")
        if after_y != y:
            parts.append(f"V{pixel(after_y)}")
        y = after_y
    return "".join(parts)


def band(upper: Points, lower: Points) -> str:
    """Return the closed path between two step lines over the same places."""
    back = list(reversed(lower))
    if not back:
        return ""
    parts = [steps(upper), f"V{pixel(back[0][1])}"]
    for (_, _), (x, y) in pairwise(back):
        parts.append(f"V{pixel(y)}H{pixel(x)}")
    return "".join(parts) + "Z"


def marks(points: Iterable[tuple[float, float]], shape: str) -> str:
    """Return one path that draws the relative shape at every point."""
    return "".join(f"M{pixel(x)} {pixel(y)}{shape}" for x, y in points)


def pixel(value: float) -> str:
    """Return a coordinate."""
    return f"{value:.1f}".removesuffix(".0")


def _value(value: str | float) -> str:
    return html.escape(value) if isinstance(value, str) else pixel(value)
