"""Sizes of a chat template's values, and of texts formatted from them. Pure.

Sizes are in characters; an item of a container counts as 16, which is its memory and the time that
a filter takes for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from jinja2 import TemplateError
from jinja2.utils import Namespace

MOST_CHARACTERS = 1 << 24
"""Size of each value that a template makes, and of the prompt."""
ITEM, PIECE = 16, 64
"""Characters that an item of a container counts as, and one that is a new text."""

CONTAINERS: tuple[type[Any], ...] = (
    list,
    tuple,
    dict,
    type({}.keys()),
    type({}.values()),
    type({}.items()),
)
VALUES: tuple[type[Any], ...] = (str, bytes, int, float, *CONTAINERS)
"""Types whose methods need a size."""

_CONVERSION = re.compile(r"%(?:\([^)]*\))?[-#0 +]*(\*|\d+)?(?:\.(\*|\d+))?")


def check(size: int, most: int = MOST_CHARACTERS, unit: str = "characters") -> int:
    """Return a size; raise TemplateError if it is too large."""
    if size > most:
        raise TemplateError(f"a value of more than {most} {unit}")
    return size


def deep_size(value: object) -> int:
    """Return the size of a value with all that it contains, as often as it contains it.

    Raises:
        TemplateError: it is too large, such as a list that was put twice into a list, 26 times; or
            it holds a namespace, which may hold itself.
    """
    if isinstance(value, str):
        return len(value)
    rest: list[Any] = [value]
    size = 0
    while rest:
        one = rest.pop()
        if isinstance(one, str):
            size += len(one)
        elif isinstance(one, CONTAINERS):
            size += ITEM * len(one)
            check(size)
            rest += one
            if isinstance(one, dict):
                rest += one.values()
        elif isinstance(one, Namespace):
            raise TemplateError("a namespace must be read by its attributes")
        else:
            size += ITEM
    return check(size)


def flat_size(value: object) -> int:
    """Return the size of a value without what its items contain."""
    if isinstance(value, str):
        return len(value)
    return ITEM * len(value) if isinstance(value, CONTAINERS) else 0


def percent_size(form: str, given: object) -> int:
    """Return an upper bound of the size of `form % given`."""
    values: Iterable[object]
    if isinstance(given, Mapping):
        values = given.values()
    else:
        values = given if isinstance(given, tuple) else (given,)
    size, most = len(form), max(map(deep_size, values), default=0)
    for found in _CONVERSION.finditer(form):
        size += most + sum(map(_number, found.groups()))
    return size


def field_size(value: object, specification: str) -> int:
    """Return the size of a field of `str.format`."""
    return deep_size(value) + sum(map(_number, re.findall(r"\d+", specification)))


def _number(text: str | None) -> int:
    """Return a width or precision, which is bounded whatever its value is."""
    if text == "*":
        raise TemplateError("a width must be a number; got *")
    return check(int(text[:9])) if text else 0


def shown(value: Any) -> Any:
    """Return a value that may be written; raise TemplateError if its text is too large."""
    if not isinstance(value, str):
        deep_size(value)
    return value
