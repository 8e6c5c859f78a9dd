"""Results of long measurements, one JSON line each: a stopped run resumes.

A line that a kill tore is skipped. The last line of a key counts.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".bench"

Row = dict[str, Any]


def load(path: Path) -> Iterator[Row]:
    """Yield every whole line of a file, the oldest first; nothing if the file does not exist."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                continue
            if isinstance(row, dict):
                yield row


def append(path: Path, row: Mapping[str, Any]) -> None:
    """Append one line; it is on its way to the disk when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        if file.seek(0, os.SEEK_END) > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # ends a torn line, so that it spoils no other
                file.write(b"\n")
        file.write(json.dumps(row).encode() + b"\n")


class Results:
    """Rows by part and key, in one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[tuple[str, str], Row] = {
            (one["part"], one["key"]): one["row"] for one in load(path)
        }

    def get(self, part: str, key: str) -> Row | None:
        """Return a row; None if it was not measured."""
        return self._rows.get((part, key))

    def put(self, part: str, key: str, row: Mapping[str, Any]) -> None:
        """Add a row, in the file too."""
        self._rows[part, key] = dict(row)
        append(self._path, {"part": part, "key": key, "row": self._rows[part, key]})


def digest(paths: Iterable[Path], *inputs: object) -> str:
    """Return a digest of the files at and below these paths and of other inputs.

    A result holds for the sources and the options that it was measured with.
    """
    found = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                name = os.path.relpath(file, ROOT)
                found.update(f"{name}\n".encode() + file.read_bytes() + b"\0")
    found.update(repr(inputs).encode())
    return found.hexdigest()[:16]
