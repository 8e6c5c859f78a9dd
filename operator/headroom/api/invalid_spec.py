"""Why a resource is invalid: the field, the rule and the value of each problem."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError

_SHOWN = 80
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
        return f"{self.field}: {self.rule}, got {self.got}"


class InvalidSpec(ValueError):  # noqa: N818  (named by what the caller does next: report it as this reason)
    """The object breaks its schema; nothing is changed until it is corrected."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in self.problems))


def problems_of(error: ValidationError, root: str) -> tuple[Problem, ...]:
    """Translate pydantic's errors below `root` into paths and rules of the resource."""
    found: list[Problem] = []
    for detail in error.errors(include_url=False):
        path = _path(root, detail["loc"])
        if detail["type"] == "rules":
            value = detail["input"]
            for rule in detail["ctx"]["broken"]:
                field = f"{path}.{rule.field}" if rule.field else path
                got = shown(_at(value, rule.field) if rule.field else value, field)
                found.append(Problem(field=field, rule=rule.message, got=got))
        elif detail["type"] == "missing":
            found.append(Problem(field=path, rule="is required", got=_ABSENT))
        else:
            rule_text = detail["msg"][:1].lower() + detail["msg"][1:]
            found.append(Problem(field=path, rule=rule_text, got=shown(detail["input"], path)))
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


def _open(value: Any) -> Any:
    """Replace values that may be confidential."""
    if isinstance(value, dict):
        return {k: "…" if k in _CONFIDENTIAL else _open(v) for k, v in value.items()}
    return [_open(one) for one in value] if isinstance(value, list | tuple) else value


def _path(root: str, location: tuple[int | str, ...]) -> str:
    return root + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in location)


def _at(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value
