"""Values of JSON: nested lists of a shape, and the names of types for messages. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from headroom_server.errors import InvalidRequestError


def flatten(data: object, shape: Sequence[int], where: str) -> list[object]:
    """Flatten nested lists of exactly this shape.

    Raises:
        InvalidRequestError: with the axis, its expected size, and what was found.
    """
    level: list[object] = [data]
    for axis, size in enumerate(shape):
        if {*map(type, level)} - {list}:
            found = next(value for value in level if type(value) is not list)
            raise InvalidRequestError(
                f"{where}: axis {axis} must be a list of {size} elements for shape "
                f"{list(shape)}; got "
                f"{kind(found)}"
            )
        lengths = {*map(len, level)}  # type: ignore[arg-type]
        if lengths - {size}:
            raise InvalidRequestError(
                f"{where}: axis {axis} must have {size} elements for shape {list(shape)}; got "
                f"{next(iter(lengths - {size}))}"
            )
        level = list(chain.from_iterable(level))  # type: ignore[arg-type]
    return level


def nest(flat: list[object], shape: Sequence[int]) -> object:
    """Nest a flat list; the inverse of `flatten`. An empty shape gives the single element."""
    for size in reversed(shape[1:]):
        flat = [flat[i : i + size] for i in range(0, len(flat), size)]
    return flat if shape else flat[0]


def kind(value: object) -> str:
    """Describe a JSON value's type, for messages."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    names |= {int: "an integer", float: "a fraction", type(None): "null"}
    return names.get(type(value), type(value).__name__)
