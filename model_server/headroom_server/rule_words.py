"""The rules that pydantic checks, in the words of all other errors: "must be ...". Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

_SHOULD = re.compile(r"^\w+ should")
_COUNTED = re.compile(r" after validation, not .*$")
"""The number of items that were given."""


def rule_of(problem: Mapping[str, Any]) -> str:
    """Return the broken rule of one of pydantic's errors, without the field and the value."""
    if problem["type"] == "missing":
        return "is required"
    return _COUNTED.sub("", _SHOULD.sub("must", str(problem["msg"]).removeprefix("Value error, ")))


def items_of(problem: Mapping[str, Any]) -> str | None:
    """Return how many items a list of the wrong length has, as text; None for other errors."""
    count = problem.get("ctx", {}).get("actual_length")
    return None if count is None else f"{count} item{'' if count == 1 else 's'}"


def text_form(pattern: str, rule: str) -> AfterValidator:
    """Return the check of a text; `rule` says what the pattern admits."""
    form = re.compile(pattern)

    def check(text: str) -> str:
        if form.fullmatch(text) is None:
            raise PydanticCustomError("text_form", "{rule}", {"rule": rule})
        return text

    return AfterValidator(check)
