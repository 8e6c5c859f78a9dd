"""HTML and SVG elements as text, with every name, message and value escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable

from headroom.printable import printable

_VOID = frozenset({"input", "link", "meta", "br"})


class Markup(str):
    """Text that is markup already, and is not escaped again."""

    __slots__ = ()


Inner = str | Markup | None


def tag(name: str, /, *inner: Inner, **attributes: str | int | float | bool | None) -> Markup:
    """Return an element; plain text within is escaped, None is left out.

    `class_` is written class, and an underscore within a name as a hyphen. An attribute that is
    True has no value; one that is False or None is left out.
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
    """Return the parts one after the other; plain text is escaped, None is left out."""
    return Markup(
        "".join(
            part if isinstance(part, Markup) else _shown(part) for part in parts if part is not None
        )
    )


def pixel(value: float) -> str:
    """Return a coordinate, to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")


def _value(value: str | int | float) -> str:
    if isinstance(value, float):
        return pixel(value)
    return _shown(str(value))


def _shown(text: str) -> str:
    """Return text as markup; control characters are spelled."""
    return html.escape(printable(text))
