"""Line numbers of the keys of a TOML text."""

from __future__ import annotations

import re
import tomllib
from typing import Any

Path = tuple[str | int, ...]
"""Keys, and indexes of arrays: ("service", 0, "server", "max_batch")."""

MOST_TRIES = 100
_CLOSES = re.compile(r"""[\]}"'][ \t]*(#.*)?$""")
"""End of the last of several lines."""


def line_of(text: str, path: Path) -> int:
    """Return the line of a key, or of the innermost written table around it.

    The text is valid TOML. Keys of an inline table or array share the line on which it begins.
    """
    lines = _lines(text)
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def _lines(text: str) -> dict[Path, int]:
    """Map every key to its line, up to a statement that does not end soon.

    A statement ends where its lines are valid TOML: each try reads them all.
    """
    found: dict[Path, int] = {}
    lengths: dict[Path, int] = {}
    table: Path = ()
    pending, begun, tries = "", 0, 0
    for number, line in enumerate(text.split("\n"), start=1):
        begun = begun if pending else number
        tries = tries if pending else 0
        pending += line + "\n"
        if begun < number and _CLOSES.search(line) is None:
            continue
        try:
            statement = tomllib.loads(pending)
        except ValueError:
            tries += 1
            if tries > MOST_TRIES:
                break
            continue
        if pending.lstrip().startswith("["):
            table = _header(statement, lengths)
            found.setdefault(table, begun)
        else:
            _take(statement, table, begun, found)
        pending = ""
    return found


def _header(statement: dict[str, Any], lengths: dict[Path, int]) -> Path:
    """Return the path of a header's table; an array of tables grows by one."""
    path: Path = ()
    value: Any = statement
    while isinstance(value, dict) and value:
        key, value = next(iter(value.items()))
        path += (key,)
        if isinstance(value, list):
            lengths[path] = lengths.get(path, 0) + 1
        if path in lengths:
            path += (lengths[path] - 1,)
    return path


def _take(value: Any, path: Path, line: int, found: dict[Path, int]) -> None:
    found.setdefault(path, line)
    if isinstance(value, dict):
        for key, inner in value.items():
            _take(inner, (*path, key), line, found)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _take(inner, (*path, index), line, found)
