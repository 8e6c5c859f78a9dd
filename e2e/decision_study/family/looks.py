"""The checked-in record of looks at the judge set: when, at which commit, why, which cells."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import results

RECORD = Path(__file__).parent / "looks.jsonl"


def note(path: Path, reason: str, cells: Sequence[str]) -> int:
    """Add a look to the record and return how many there are."""
    row = {
        "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ"),
        "commit": _commit(),
        "cells": len(cells),
        "reason": reason,
    }
    results.append(path, row)
    return len(list(results.load(path)))


def _commit() -> str:
    """Return the commit, with a plus sign where tracked files differ from it."""
    found = subprocess.run(
        ["git", "describe", "--always", "--abbrev=12", "--dirty=+"],
        cwd=results.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip() or "unknown"
