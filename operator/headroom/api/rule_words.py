"""The rules that pydantic checks, in the words of all other errors: "must be ...". Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_WORDS = {
    "missing": "is required",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "dict_type": "must be an object",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "string_type": "must be a string",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
}
_SHOULD = re.compile(r"^[A-Z][a-z]+ should ")
_COUNTED = re.compile(r" after validation, not .*$")
"""The number of items that were given: the value shows them."""


def rule_of(detail: ErrorDetails) -> str:
    """Return the broken rule of one of pydantic's errors; the field and the value are not in it."""
    if detail["type"] in _WORDS:
        return _WORDS[detail["type"]]
    message = _SHOULD.sub("must ", detail["msg"].removeprefix("Value error, "))
    return _COUNTED.sub("", message[:1].lower() + message[1:])
