"""Outcomes of planted bugs, and measurements without a bug, so that a stopped run resumes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from results import Results


class Ledger:
    """Outcomes in a file, by bug and by the tests that ran on it.

    A caught bug stays caught; one that was missed runs again when its tests change.
    """

    def __init__(self, file: Path) -> None:
        self._results = Results(file)

    def outcome(self, path: str, broken: str, tests: str) -> bool | None:
        """Return whether these tests notice it; None if they have not run on it yet."""
        row = self._results.get("bug", _digest(path, broken)) or {"noticed": False, "tests": ""}
        return True if row["noticed"] else (False if row["tests"] == tests else None)

    def note(self, path: str, broken: str, tests: str, *, noticed: bool) -> None:
        """Write an outcome to the file."""
        self._results.put("bug", _digest(path, broken), {"noticed": noticed, "tests": tests})


class Measures:
    """Measurements without a bug, for one state of modules and tests."""

    def __init__(self, file: Path, state: str) -> None:
        self._results, self._state = Results(file), state

    def read(self) -> dict[str, Any] | None:
        """Return them; None if they are missing for this state."""
        return self._results.get("sound", self._state)

    def write(self, measures: Mapping[str, Any]) -> None:
        """Write them to the file."""
        self._results.put("sound", self._state, measures)


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
