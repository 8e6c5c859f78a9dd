"""Types of the fields of status: bounded texts and counts, and how numbers are rounded."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field

Count = Annotated[int, Field(ge=0)]
Word = Annotated[str, Field(max_length=64)]
Text = Annotated[str, Field(max_length=4096)]
Time = Annotated[str, Field(max_length=64, json_schema_extra={"format": "date-time"})]


def rounded(number: float | None) -> float | None:
    """Round to three decimals; JSON has no infinity, so what is not finite is not shown."""
    return None if number is None or not math.isfinite(number) else round(number, 3)
