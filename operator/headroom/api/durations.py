"""Durations in the notation of resources (`250ms`, `1m30s`) as exact values.

The grammar is Go's, bounded so that the API server's CEL reads every accepted text exactly as this
module does: at most six digits and three decimals per part and twenty characters in total stay
within int64 nanoseconds and above one microsecond.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticCustomError, core_schema

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue

PATTERN = r"^([0-9]{1,6}(\.[0-9]{1,3})?(ms|s|m|h))+$"
MAX_LENGTH = 20
UNITS = "ms, s, m or h"
GRAMMAR = f"numbers with units {UNITS}, such as 250ms or 1m30s"

_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_MICROSECONDS = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time in whole microseconds, so that comparing and rendering lose nothing."""

    microseconds: int

    @classmethod
    def parse(cls, text: str) -> Duration:
        """Read `1h30m` or `250ms`; raise ValueError naming the rule and the text."""
        if len(text) > MAX_LENGTH or not re.fullmatch(PATTERN, text):
            raise ValueError(f"a duration must be {GRAMMAR}; got {text!r:.60}")
        return cls(
            sum(int(Decimal(n) * _MICROSECONDS[unit]) for n, unit in _PART.findall(text)),
        )

    @classmethod
    def of_seconds(cls, seconds: float) -> Duration:
        """Round to whole microseconds; raise ValueError for NaN, infinity and below zero."""
        if not 0 <= seconds < float("inf"):
            raise ValueError(
                f"a duration must be a finite number of seconds of at least 0; got {seconds}"
            )
        return cls(round(seconds * 1_000_000))

    @property
    def seconds(self) -> float:
        """The span in seconds."""
        return self.microseconds / 1_000_000

    def __str__(self) -> str:
        """Render as Go does, without parts that are zero: 5400 s is `1h30m`, not `1h30m0s`."""
        if self.microseconds == 0:
            return "0s"
        minutes, rest = divmod(self.microseconds, _MICROSECONDS["m"])
        hours, minutes = divmod(minutes, 60)
        whole_ms, odd_microseconds = divmod(rest, 1_000)
        if self.microseconds < _MICROSECONDS["s"]:
            whole_ms, odd_microseconds = 0, rest
        seconds = Decimal(whole_ms) / 1_000
        parts = (
            (hours, "h"),
            (minutes, "m"),
            (seconds, "s"),
            (Decimal(odd_microseconds) / 1_000, "ms"),
        )
        return "".join(f"{_plain(number)}{unit}" for number, unit in parts if number)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Accept a text or a Duration; serialize as text."""
        return core_schema.no_info_plain_validator_function(
            cls._validate, serialization=core_schema.to_string_ser_schema()
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """State type and length; the bounds of a field state the grammar, with words for it."""
        return {"type": "string", "maxLength": MAX_LENGTH}

    @classmethod
    def _validate(cls, value: object) -> Duration:
        if isinstance(value, Duration):
            return value
        if not isinstance(value, str):
            raise PydanticCustomError("duration", f"must be {GRAMMAR}")
        try:
            return cls.parse(value)
        except ValueError:
            raise PydanticCustomError("duration", f"must be {GRAMMAR}") from None


def _plain(number: int | Decimal) -> str:
    return f"{number.normalize():f}" if isinstance(number, Decimal) else str(number)
