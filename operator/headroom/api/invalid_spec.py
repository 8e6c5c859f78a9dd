"""Problems of an invalid resource: the field, the rule and the value of each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from headroom.api.rule_words import rule_of

if TYPE_CHECKING:
    from pydantic import ValidationError

_SHOWN = 80
_NAMED, _LONGEST_FIELD = 32, 256
"""A condition's message has at most 32 768 characters."""
_LEVELS = 8
"""Depth of nested values."""
_LARGEST_SHOWN = 10**_SHOWN
_CONFIDENTIAL = frozenset({"args", "env", "podTemplate", "value"})
"""Fields that may contain secrets, with everything below: more people read a status than a spec."""
_ABSENT = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One field that breaks one rule."""

    field: str
    rule: str
    got: str

    def __str__(self) -> str:
        """Render as one clause of a message."""
        field = self.field
        if len(field) > _LONGEST_FIELD:
            field = f"{field[:_LONGEST_FIELD]}…"
        return f"{field}: {self.rule}; got {self.got}"


class InvalidSpec(ValueError):  # noqa: N818  (named by what the caller does next: report it as this reason)
    """The object breaks its schema; nothing is changed until it is corrected."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        named = [str(problem) for problem in self.problems[:_NAMED]]
        if len(self.problems) > _NAMED:
            named.append(f"and {len(self.problems) - _NAMED} more")
        super().__init__("; ".join(named))


def problems_of(error: ValidationError) -> tuple[Problem, ...]:
    """Translate pydantic's errors of a spec into paths and rules of the resource."""
    found: list[Problem] = []
    for detail in error.errors(include_url=False):
        if detail["type"] == "default_factory_not_called":
            continue  # a default that follows from another field, which has its own problem
        path = _path(detail["loc"])
        if detail["type"] == "rules":
            value = detail["input"]
            for rule, got in detail["ctx"]["broken"]:
                field = f"{path}.{rule.field}" if rule.field else path
                there = _at(value, rule.field) if rule.field else value
                text = got or (_ABSENT if there is None else shown(there, field))
                found.append(Problem(field=field, rule=rule.message, got=text))
        else:
            got = _ABSENT if detail["type"] == "missing" else shown(detail["input"], path)
            found.append(Problem(field=path, rule=rule_of(detail), got=got))
    return tuple(found)


def shown(value: Any, field: str = "") -> str:
    """Render a value, cut to a length that fits a status message.

    Values that may be confidential are shown by their type only.
    """
    if _CONFIDENTIAL.intersection(re.split(r"[.\[]", field)):
        return _KINDS.get(type(value), "a value") + " that is not shown"
    text = json.dumps(_open(value), default=str, ensure_ascii=True)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


_KINDS: Mapping[type, str] = {
    bool: "a boolean",
    dict: "an object",
    float: "a number",
    int: "a number",
    list: "a list",
    str: "a string",
}


def _open(value: Any, levels: int = _LEVELS) -> Any:
    """Replace values that may be confidential, and leave out what is not shown anyway."""
    if isinstance(value, str):
        return value[: _SHOWN + 1]
    if isinstance(value, int) and abs(value) > _LARGEST_SHOWN:
        return "a number of more than 80 digits"
    if not isinstance(value, dict | list | tuple):
        return value
    if levels == 0:
        return "…"
    if isinstance(value, dict):
        first = islice(value.items(), _SHOWN)
        return {
            _open(key): "…" if key in _CONFIDENTIAL else _open(inner, levels - 1)
            for key, inner in first
        }
    return [_open(inner, levels - 1) for inner in value[:_SHOWN]]


def _path(location: tuple[int | str, ...]) -> str:
    return "spec" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in location)


def _at(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value
