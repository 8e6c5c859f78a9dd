"""A body becomes validated fields, or an error that names the field and the rule. Pure."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from headroom_server.errors import NotJsonError
from headroom_server.openai_api.bodies.schemas import Fields
from headroom_server.openai_api.errors import InvalidFieldError
from headroom_server.rule_words import items_of, rule_of

F = TypeVar("F", bound=BaseModel)
_SUCCESSORS = {"functions": "tools", "function_call": "tool_choice"}
"""Fields of OpenAI's API that others have replaced."""


def validated(fields: type[F], body: bytes) -> F:
    """Return the fields of a body.

    Raises:
        InvalidRequestError: with the field, the rule and what was found.
    """
    try:
        return fields.model_validate_json(body)
    except ValidationError as error:
        problems = error.errors(include_url=False)
    # of the alternatives of a field, the one that the value comes closest to
    first = problems[0]["loc"][:1]

    def close(one: Any) -> tuple[bool, int, bool]:
        return one["loc"][:1] == first, len(one["loc"]), not one["type"].endswith("_type")

    raise _invalid(max(problems, key=close))


def _invalid(problem: Any) -> Exception:
    kind, rule = problem["type"], str(problem["msg"])
    if kind == "json_invalid":
        return NotJsonError(f"the body must be JSON; got {rule.removeprefix('Invalid JSON: ')}")
    field = _field(problem["loc"])
    if kind == "extra_forbidden":
        field = ".".join(filter(None, (_field(problem["loc"][:-1]), str(problem["loc"][-1])[:80])))
        use = f"; use {_SUCCESSORS[field]}" if field in _SUCCESSORS else ""
        return InvalidFieldError(field, f"unknown parameter: {field}{use}", "unknown_parameter")
    if kind == "missing":
        return InvalidFieldError(
            field, f"missing required parameter: {field}", "missing_required_parameter"
        )
    rule = rule_of(problem)
    if kind == "value_error":
        return InvalidFieldError(field or rule.split(" ", 1)[0], rule)
    code = "invalid_type" if kind.endswith("_type") else "invalid_value"
    got = items_of(problem) or _shown(problem["input"])
    return InvalidFieldError(field, f"{field or 'the body'} {rule}; got {got}", code)


def _field(location: tuple[Any, ...]) -> str | None:
    """Return a field's path, without the names that the validator gives to alternatives."""
    path, known = list(location), _names()
    names = [str(one) for at, one in enumerate(path) if at == 0 or one in known or _index(one)]
    return ".".join(names) or None


@cache
def _names() -> frozenset[str]:
    """Return the fields of all objects that a body may have."""
    kinds = [Fields]
    for one in kinds:
        kinds += one.__subclasses__()
    return frozenset(
        field.alias or name for kind in kinds for name, field in kind.model_fields.items()
    )


def _index(part: object) -> bool:
    return isinstance(part, int)


def _shown(value: object) -> str:
    if value is None or isinstance(value, str | int | float):
        return f"{value!r:.60}"
    return "an object" if isinstance(value, dict) else "a list"
