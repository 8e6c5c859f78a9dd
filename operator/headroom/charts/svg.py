"""Shapes of SVG: labels, lines, steps, bands and marks, with coordinates in pixels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

from headroom.charts.markup import Markup, pixel, tag

Points = Sequence[tuple[float, float]]


def label(x: float, y: float, content: str, **attributes: str | float | None) -> Markup:
    """Return text at a position."""
    return tag("text", content, x=x, y=y, **attributes)


def path(points: Points, *, steps: bool = False) -> str:
    """Return the path through the points; a gap, where y is not a number, lifts the pen.

    With `steps`, each value is kept until the next point.
    """
    parts: list[str] = []
    lifted, before_y = True, 0.0
    for x, y in points:
        if math.isnan(y):
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


def band(upper: Points, lower: Points) -> str:
    """Return the closed path between two step lines over the same positions."""
    back = list(reversed(lower))
    if not back:
        return ""
    parts = [path(upper, steps=True), f"V{pixel(back[0][1])}"]
    for (_, _), (x, y) in pairwise(back):
        parts.append(f"V{pixel(y)}H{pixel(x)}")
    return "".join(parts) + "Z"


def marks(points: Iterable[tuple[float, float]], shape: str) -> str:
    """Return one path that draws the relative shape at every point."""
    return "".join(f"M{pixel(x)} {pixel(y)}{shape}" for x, y in points)
