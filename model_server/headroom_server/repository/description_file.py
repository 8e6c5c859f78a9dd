"""Reads `model.toml` into a description; each mistake gets a line. Pure."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from pydantic import ValidationError

from headroom_server.engine import LoadError
from headroom_server.repository.description import Description
from headroom_server.rule_words import rule_of

MAX_BYTES = 1024 * 1024
MOST_PARTS = 32
"""The library reads a key of n parts between dots in n^3 steps: one of 8 KB took 1.2 s, and one of
1 MiB would not end."""
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_NEXT = rf"[ \t]*+\.[ \t]*+{_PART}"
_KEY = re.compile(rf"{_PART}(?:{_NEXT}){{0,{MOST_PARTS - 1}}}+({_NEXT})?")


def parse(data: bytes, where: str) -> Description:
    """Parse a file's bytes.

    Raises:
        LoadError: a line per mistake, each with `where`, the field, the rule and the value.
    """
    if len(data) > MAX_BYTES:
        raise LoadError(f"{where}: must have at most {MAX_BYTES} bytes; got {len(data)}")
    try:
        text = data.decode()
        if any(key[1] for key in _KEY.finditer(text)):
            raise LoadError(f"{where}: a key must have at most {MOST_PARTS} parts between dots")
        fields = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise LoadError(f"{where}: must be UTF-8; got byte {data[error.start]:#04x}") from error
    except RecursionError as error:
        raise LoadError(f"{where}: must not be nested so deeply") from error
    except ValueError as error:  # TOMLDecodeError, and integers beyond Python's own bound
        raise LoadError(f"{where}: {error}") from error
    try:
        return Description.model_validate(fields)
    except ValidationError as error:
        lines = [f"{where}: {_line(one)}" for one in error.errors(include_url=False)]
        raise LoadError("\n".join(lines)) from error


def _line(problem: Any) -> str:
    field = "".join(f"[{at}]" if isinstance(at, int) else f".{at}" for at in problem["loc"])
    rule = rule_of(problem)
    field = field.removeprefix(".").removesuffix(".[key]")
    if problem["type"] == "extra_forbidden":
        return f"{field}: unknown field; check the spelling"
    if problem["type"] == "missing":
        return f"{field} is required"
    if not field:
        return rule
    if isinstance(problem["input"], dict):
        return f"{field}: {rule}"
    return f"{field}: {rule}; got {problem['input']!r:.100}"
