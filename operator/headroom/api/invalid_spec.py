"""Why a resource cannot be acted on: each problem's field, the rule and what was received."""

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
"""What may hold a secret, and so does all below it: a status is read by more people than a spec."""
_ABSENT = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One field that breaks one rule."""

    field: str
    rule: str
    received: str

    def __str__(self) -> str:
        """Render as one clause of a message."""
        return f"{self.field}: {self.rule}, received {self.received}"


class InvalidSpec(ValueError):  # noqa: N818  (named by what the caller does next: report it as this reason)
    """The object breaks its schema. Nothing is done for it until it is corrected."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in self.problems))


def problems_of(error: ValidationError, root: str) -> tuple[Problem, ...]:
    """Translate what pydantic found below `root` into paths and words of the resource."""
    found: list[Problem] = []
    for detail in error.errors(include_url=False):
        path = _path(root, detail["loc"])
        if detail["type"] == "rules":
            value = detail["input"]
            for rule in detail["ctx"]["broken"]:
                field = f"{path}.{rule.field}" if rule.field else path
                received = shown(_at(value, rule.field) if rule.field else value, field)
                found.append(Problem(field=field, rule=rule.message, received=received))
        elif detail["type"] == "missing":
            found.append(Problem(field=path, rule="is required", received=_ABSENT))
        else:
            rule_text = detail["msg"][:1].lower() + detail["msg"][1:]
            found.append(Problem(field=path, rule=rule_text, received=shown(detail["input"], path)))
    return tuple(found)


def shown(value: Any, field: str = "") -> str:
    """Render a received value, cut to a length that a status message can carry.

    Of what may be confidential only the kind.
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
    """Leave out what may be confidential."""
    if isinstance(value, dict):
        return {k: "…" if k in _CONFIDENTIAL else _open(v) for k, v in value.items()}
    return [_open(one) for one in value] if isinstance(value, list | tuple) else value


def _path(root: str, location: tuple[int | str, ...]) -> str:
    return root + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in location)


def _at(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value
