"""Types of settings: the base of all groups, durations, and how text is split. Pure."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
SecondsOrNone = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
Factor = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]


class Group(BaseModel):
    """Base of the groups of settings."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", protected_namespaces=(), use_attribute_docstrings=True
    )


def listed(value: object) -> object:
    """Split a text at commas and spaces."""
    return tuple(filter(None, value.replace(",", " ").split())) if isinstance(value, str) else value


def table(value: object) -> object:
    """Read a text as JSON."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError(f"must be a JSON object: {error}") from error


def pair(value: object) -> object:
    """Split a text at colons."""
    return tuple(value.split(":")) if isinstance(value, str) else value
