"""Results kept as they come, so that a part that was interrupted goes on where it stopped.

A result holds for the sources that it was measured on: those of the operator and of this package.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SOURCES = (ROOT / "operator" / "headroom", ROOT / "e2e" / "reliability")
FOLDER = ROOT / ".bench" / "reliability"

Row = dict[str, Any]


class Kept:
    """One file of lines, each a part, a key and a row; the last one of a key counts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[tuple[str, str], Row] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                self._take_in(line)

    @classmethod
    def of_these_sources(cls, folder: Path = FOLDER) -> Kept:
        """Open what was measured on the sources as they are."""
        return cls(folder / f"{digest()}.jsonl")

    def get(self, part: str, key: str) -> Row | None:
        """Give a row that is known."""
        return self._rows.get((part, key))

    def put(self, part: str, key: str, row: Mapping[str, Any]) -> None:
        """Keep a row, at once."""
        self._rows[part, key] = dict(row)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.write(json.dumps({"part": part, "key": key, "row": self._rows[part, key]}) + "\n")

    def _take_in(self, line: str) -> None:
        try:
            one = json.loads(line)
        except json.JSONDecodeError:  # half a line, of a process that was killed
            return
        self._rows[one["part"], one["key"]] = one["row"]


def digest() -> str:
    """Name the sources by their content."""
    sum_of_all = hashlib.sha256()
    for path in sorted(path for folder in SOURCES for path in folder.rglob("*.py")):
        sum_of_all.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes() + b"\0")
    return sum_of_all.hexdigest()[:12]
