"""The form of every table of a scenario file: known keys, strict types, values with their units.

Times are strings such as "250ms" or "3m". A missing key has the default of the value that the
table describes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from headroom.api.durations import Duration
from headroom.api.text_forms import TextForm
from headroom.api.values import Within

MANY = 1_000_000

Name = Annotated[
    str,
    Field(max_length=120),
    TextForm("^[A-Za-z0-9][-A-Za-z0-9._/]*$", "must be a name of letters, digits, -, ., _ and /"),
]
Time = Annotated[Duration, Within("0s", "9000h")]
Span = Annotated[Duration, Within("1ms", "9000h")]
Replicas = Annotated[int, Field(ge=1, le=10_000)]
Count = Annotated[int, Field(ge=0, le=MANY)]


def rule_broken(rule: str, got: object) -> PydanticCustomError:
    """Return the error of a rule across keys, in the form of all errors."""
    return PydanticCustomError("rule", "{rule}", {"rule": rule, "got": got})


class Table(BaseModel):
    """A table: frozen, without coercion or unknown keys."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)

    renamed: ClassVar[Mapping[str, str]] = {}
    """Keys whose name in the value is neither key nor key + "_s"."""

    @model_validator(mode="before")
    @classmethod
    def _known(cls, value: object) -> object:
        if isinstance(value, Mapping):
            for key in value:
                if key not in cls.model_fields:
                    known = list(cls.model_fields)
                    rule = f"must be one of the keys {', '.join(known)}"
                    context = {"rule": rule, "key": key, "known": known}
                    raise PydanticCustomError("unknown_key", "{rule}", context)
        return value

    def given(self) -> dict[str, Any]:
        """Return the keys that are set, with the names and units of the value."""
        fields: dict[str, Any] = {}
        for key in type(self).model_fields:
            if key in self.model_fields_set:
                value = getattr(self, key)
                timed = isinstance(value, Duration)
                name = self.renamed.get(key, f"{key}_s" if timed else key)
                fields[name] = value.seconds if timed else value
        return fields
