"""The chart's values as a Markdown table: descriptions of the schema, defaults of the values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

BEGIN = "<!-- values: written by `make chart` -->"
END = "<!-- end of values -->"


@dataclass(frozen=True)
class Value:
    """One value that a user may set."""

    name: str
    """Dotted name, as for `--set`."""
    default: Any
    meaning: str


def values(schema: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Value]:
    """Return every value with a default, in the order of the schema."""
    return list(_walk("", schema, defaults))


def _walk(prefix: str, schema: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[Value]:
    for name, part in schema["properties"].items():
        if name not in defaults:
            continue
        default = defaults[name]
        if part.get("properties") and default:
            yield from _walk(f"{prefix}{name}.", part, default)
        else:
            yield Value(prefix + name, default, part["description"])


def table(rows: list[Value]) -> str:
    """Render as Markdown, with a final line feed."""
    lines = ["| Value | Default | Meaning |", "|---|---|---|"]
    lines += [f"| `{row.name}` | `{_shown(row.default)}` | {row.meaning} |" for row in rows]
    return "\n".join(lines) + "\n"


def _shown(default: object) -> str:
    return json.dumps(default)


def put_in(page: str, text: str) -> str:
    """Return the page with `text` between its two markers.

    Raises:
        ValueError: a mark is missing.
    """
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page needs the marks {BEGIN} and {END}, in this order")
    return f"{head}{BEGIN}\n{text}{END}{tail}"
