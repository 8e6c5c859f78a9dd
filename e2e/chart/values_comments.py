"""Comments of values.yaml: above each value its description from the schema. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

_WIDTH = 100
_INDENT = 2
_KEY = re.compile(r"^( *)(\w+):(?: (\{\w.*)?|$)")
"""A key on a line of its own; the third group is a mapping on the same line."""


def commented(text: str, schema: Mapping[str, Any]) -> str:
    """Return the values with each comment written again; the head of the file stays."""
    head, _, body = text.partition("\n\n")
    path: list[str] = []
    lines = [head, ""]
    for line in body.splitlines():
        if line.lstrip().startswith("#"):
            continue
        if key := _KEY.match(line):
            indent, name, inner = key.groups()
            path = [*path[: len(indent) // _INDENT], name]
            part = _part(schema, path)
            if not (inner and part.get("properties")):
                lines += _comment(indent, part["description"])
        lines.append(line)
    return "\n".join(lines) + "\n"


def _part(schema: Mapping[str, Any], path: Sequence[str]) -> Mapping[str, Any]:
    for name in path:
        schema = schema["properties"][name]
    return schema


def _comment(indent: str, text: str) -> list[str]:
    mark = f"{indent}# "
    return textwrap.wrap(
        text, _WIDTH, initial_indent=mark, subsequent_indent=mark, break_on_hyphens=False
    )
