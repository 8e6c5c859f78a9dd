"""What became of each bug, a line each, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


class Ledger:
    """Keeps outcomes in a file, by what the bug is and by the tests that it met.

    A bug that was noticed stays so; one that was not is met again by tests that have changed.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: dict[str, tuple[bool, str]] = {}
        if file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                kept = json.loads(line)
                self._known[kept["bug"]] = (kept["noticed"], kept["tests"])

    def outcome(self, path: str, broken: str, tests: str) -> bool | None:
        """Return whether these tests notice it; None where they have not met it yet."""
        noticed, by = self._known.get(_digest(path, broken), (False, ""))
        return True if noticed else (False if by == tests else None)

    def note(self, path: str, broken: str, tests: str, *, noticed: bool) -> None:
        """Write an outcome down at once."""
        bug = _digest(path, broken)
        self._known[bug] = (noticed, tests)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"bug": bug, "noticed": noticed, "tests": tests}) + "\n")


class Measures:
    """Keeps what one state of modules and tests took without a bug."""

    def __init__(self, file: Path, state: str) -> None:
        self._file, self._state = file, state

    def read(self) -> dict[str, Any] | None:
        """Return them; None where they are of another state, or not there."""
        kept = json.loads(self._file.read_text()) if self._file.exists() else {}
        return kept.get("measures") if kept.get("state") == self._state else None

    def write(self, measures: Mapping[str, Any]) -> None:
        """Replace them."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps({"state": self._state, "measures": measures}))


def digest_of(files: Iterable[Path]) -> str:
    """Return what tells these files from the same with other contents."""
    return _digest(*(text for file in sorted(files) for text in (str(file), file.read_text())))


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
