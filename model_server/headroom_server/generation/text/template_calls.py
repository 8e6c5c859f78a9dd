"""Filters, tests and methods that a chat template has, and the sizes of their results. Pure.

Sizes are known before the value is made, since no single call can be interrupted:
`'a'.center(1000000000)` takes a second and a gigabyte. A method or filter without a size is
refused: texts have 47 methods and Jinja has 54 filters, of which chat templates use few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from jinja2 import TemplateError

from headroom_server.generation.text.template_sizes import (
    CONTAINERS,
    ITEM,
    PIECE,
    check,
    deep_size,
    flat_size,
    percent_size,
)

MOST_DIGITS = 4300
"""Digits of a whole number that is read from text; Python's own bound, for all bases."""
MOST_PRECISION = 308
MOST_INDENT = 16

Size = Callable[..., int]
"""Takes a value and what a filter or method is called with; returns the size of what it makes."""

_LINE_ENDS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_SPACES = "".join(one for one in map(chr, range(0x3001)) if one.isspace())


def unchanged(*_: object, **__: object) -> int:
    """Return the size of a result that is as large as the value, but for a small factor."""
    return 0


def _padded(text: object, width: int = 80, _fill: str = " ") -> int:
    return max(deep_size(text), width)


def _replaced(text: object, old: str, new: str, _count: int | None = None) -> int:
    whole = str(text)
    return len(whole) + whole.count(old) * len(new)


def _joined(separator: str, items: Iterable[object]) -> int:
    texts = items if isinstance(items, CONTAINERS) else list(str(items))
    return deep_size(texts) + len(separator) * len(texts)


def _split(text: str, sep: str | None = None, maxsplit: int = -1) -> int:
    ends = text.count(sep) if sep else sum(map(text.count, _SPACES))
    return PIECE * (1 + (ends if maxsplit < 0 else min(maxsplit, ends)))


def _lines(text: str, _keepends: bool = False) -> int:
    return PIECE * (1 + sum(map(text.count, _LINE_ENDS)))


METHODS: Mapping[str, Size] = {
    **dict.fromkeys(
        (
            *("capitalize", "casefold", "count", "copy", "endswith", "find", "get", "index"),
            *("isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower"),
            *("isnumeric", "isprintable", "isspace", "istitle", "isupper", "items", "keys"),
            *("lower", "lstrip", "partition", "removeprefix", "removesuffix", "rfind", "rindex"),
            *("rpartition", "rstrip", "startswith", "strip", "swapcase", "title", "upper"),
            *("values", "is_integer"),
        ),
        unchanged,
    ),
    **dict.fromkeys(("center", "ljust", "rjust", "zfill"), _padded),
    **dict.fromkeys(("split", "rsplit"), _split),
    "replace": _replaced,
    "join": _joined,
    "splitlines": _lines,
}


def _items(value: object, *_: object, **__: object) -> int:
    return PIECE * len(value) if isinstance(value, str | range) else flat_size(value)


def _compared(value: object, *_: object, **__: object) -> int:
    return max(_items(value), deep_size(value))


def _summed(value: object, _attribute: object = None, start: object = 0) -> int:
    if not isinstance(start, int | float):
        raise TemplateError("sum must start with a number")  # lists take the square of their number
    return _items(value)


def _whole_number(value: object, *_: object, **__: object) -> int:
    return check(deep_size(value), MOST_DIGITS, "digits")


def _rounded(_: object, precision: int = 0, _method: str = "common") -> int:
    return check(abs(precision), MOST_PRECISION, "digits")


def _indented(
    text: object, width: int | str = 4, _first: bool = False, _blank: bool = False
) -> int:
    whole = str(text)
    each = len(width) if isinstance(width, str) else width
    return len(whole) + (_lines(whole) // PIECE) * max(PIECE, each)


def _of_json(
    value: object,
    *_: object,
    indent: int | None = None,
    separators: Sequence[str] | None = None,
    **__: object,
) -> int:
    size = deep_size(value)
    check(len("".join(separators or ())), MOST_INDENT)
    if indent is None:
        return size
    return size + (check(indent, MOST_INDENT) * _depth(value) * size) // ITEM


def _depth(value: object) -> int:
    level: list[Any] = [value]
    depth = 0
    while level:
        depth += 1
        level = [
            part
            for one in level
            if isinstance(one, CONTAINERS)
            for part in (one.values() if isinstance(one, dict) else one)
        ]
    return depth


FILTERS: Mapping[str, Size] = {
    **dict.fromkeys(
        (
            *("abs", "attr", "capitalize", "d", "default", "e", "escape", "first", "float"),
            *("forceescape", "items", "last", "length", "count", "lower", "random", "safe"),
            *("trim", "truncate", "upper", "urlencode"),
        ),
        unchanged,
    ),
    **dict.fromkeys(
        (
            *("list", "map", "reject", "rejectattr", "reverse", "select", "selectattr"),
            *("title", "wordcount"),
        ),
        _items,
    ),
    **dict.fromkeys(("dictsort", "groupby", "max", "min", "sort", "unique"), _compared),
    "center": _padded,
    "format": lambda form, *values, **named: percent_size(str(form), named or values),
    "indent": _indented,
    "int": _whole_number,
    "join": lambda value, d="", attribute=None: _joined(str(d), value),
    "replace": _replaced,
    "round": _rounded,
    "string": deep_size,
    "sum": _summed,
    "tojson": _of_json,
}
"""Filters that templates may use; those of Jinja that lay out HTML or tables are not among them."""
COMPARING: Sequence[str] = (
    *("==", "eq", "equalto", "!=", "ne", "<", "lt", "lessthan", "<=", "le"),
    *(">", "gt", "greaterthan", ">=", "ge", "in"),
)
"""Tests that look into both of their values."""


def size_of_call(owner: Any, name: str, args: Sequence[Any], options: Mapping[str, Any]) -> int:
    """Return the size of a method's result; raise TemplateError if it is not known."""
    size = METHODS.get(name)
    if size is None or isinstance(owner, bytes):
        raise TemplateError(f"the method {name} of {type(owner).__name__} is not available")
    for one in args:
        if isinstance(one, CONTAINERS):
            deep_size(one)
    return size(owner, *args, **options)


def compared_size(*values: object) -> int:
    """Return the size of a test's result; raise TemplateError if an operand is too large."""
    for one in values:
        if isinstance(one, CONTAINERS):
            deep_size(one)
    return ITEM
