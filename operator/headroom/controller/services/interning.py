"""Store equal parts of cached objects once: most services differ in few fields.

Each service needs 32 kB for its stored spec, that spec as values, and its manifests. Nearly all of
it is equal in other services: defaults, probes, security contexts. No given object is changed, and
a returned one must not be changed.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from headroom.api import InferenceService

MOST = 4096
"""Parts to search among. Above it the search starts empty: a known part is kept, and what many
have is soon known again."""
LONGEST_TEXT = 512
DEEPEST = 100
"""A pod template has some 15 levels."""
TOO_DEEP = "nested too deeply"


class Interner:
    """Returns the first of equal values, for a bounded number of them."""

    def __init__(self) -> None:
        self._parts: dict[tuple[object, ...], Any] = {}
        self._values: dict[object, Any] = {}

    def json(self, value: Any, levels: int = DEEPEST) -> Any:
        """Return equal JSON that shares its known parts; parts nested too deep become a text.

        Everything behind recurses, and the API server stores 10 000 levels. The text is no part of
        a valid object, so the object is refused where it is used, and named.
        """
        if levels == 0 and isinstance(value, (dict, list)):
            return TOO_DEEP
        if isinstance(value, str):
            return sys.intern(value) if len(value) <= LONGEST_TEXT else value
        if isinstance(value, dict):
            parts = {self.json(key): self.json(one, levels - 1) for key, one in value.items()}
            return self._known((dict, *parts, *map(_named, parts.values())), parts)
        if isinstance(value, list):
            items = [self.json(one, levels - 1) for one in value]
            return self._known((list, *map(_named, items)), items)
        return value

    def service(self, service: InferenceService) -> InferenceService:
        """Return an equal service that shares its known values."""
        return replace(service, spec=self._value(service.spec))

    def _known(self, key: tuple[object, ...], part: Any) -> Any:
        """Look a part up; its key names nested parts by their addresses.

        Addresses hold while the outer part is known, so all are discarded at once.
        """
        if len(self._parts) >= MOST:
            self._parts.clear()
        return self._parts.setdefault(key, part)

    def _value(self, value: Any) -> Any:
        if isinstance(value, BaseModel):
            changed = {
                name: one for name, before in value if (one := self._value(before)) is not before
            }
            value = value.model_copy(update=changed) if changed else value
        try:
            if len(self._values) >= MOST:
                self._values.clear()
            return self._values.setdefault((type(value), value), value)
        except TypeError:  # it has a map in it
            return value


def _named(part: Any) -> object:
    """Return a part's key: its address, or for plain values the value with its type."""
    return ("at", id(part)) if isinstance(part, dict | list) else (type(part), part)
