"""Texts of one form, with a message that a user can follow. Pure.

The API server refuses what does not match the pattern of a schema by showing the pattern, so the
form is a CEL rule with a message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticCustomError, core_schema

from headroom.api.values import VALIDATIONS

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue


@dataclass(frozen=True, slots=True)
class TextForm:
    """Form of a text, checked by the API server and by the operator."""

    pattern: str
    """Regular expression without a quote, read alike by RE2 and Python's re."""
    message: str
    """The rule as text, such as: must be ..."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Check the form of what is a text of the right length."""
        form = re.compile(self.pattern)

        def check(value: str) -> str:
            if not form.fullmatch(value):
                raise PydanticCustomError("text_form", "{rule}", {"rule": self.message})
            return value

        return core_schema.no_info_after_validator_function(check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """State the form in CEL."""
        rule = {"rule": f"self.matches(r'{self.pattern}')", "message": self.message}
        return handler(schema) | {VALIDATIONS: [rule]}


DNS_LABEL = TextForm(
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    "must be a name of lower-case letters, digits and -, such as ranker",
)
NAME_OF_MODEL = TextForm(
    "^[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$",
    "must be a name of letters, digits, -, . and _, such as resnet50",
)
PATH = TextForm("^/[!-~]*$", "must be a path that starts with / and has no spaces")
