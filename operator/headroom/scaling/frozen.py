"""`replace` of the standard library for frozen values, in a third of its time.

A decision replaces its state, of some thirty fields, a dozen times.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # checked as that of the standard library: whether the fields exist, their types
    from dataclasses import replace as replace  # noqa: PLC0414
else:

    def replace(value, /, **changes):
        """Return the value with these fields changed."""
        names, read = _fields(type(value))
        return type(value)(**(dict(zip(names, read(value), strict=True)) | changes))


@cache
def _fields(kind: type) -> tuple[tuple[str, ...], attrgetter[tuple[Any, ...]]]:
    names = tuple(field.name for field in fields(kind))
    if len(names) < 2:
        raise TypeError(f"{kind.__name__} must have several fields; got {names}: construct it")
    return names, attrgetter(*names)
