"""Writes a client's JSON values again: integers of any size, as the parser takes them. Pure."""

from __future__ import annotations

from pydantic_core import to_json


def json_text(value: object) -> bytes:
    """Return a parsed value as JSON; orjson refuses integers of more than 64 bits."""
    return to_json(value, inf_nan_mode="null")
