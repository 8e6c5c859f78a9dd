"""The checked-in records of looks at a judge set: when, at which commit, how many cells, why."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import results


def note(path: Path, reason: str, cells: int) -> int:
    """Add a look to the record and return how many there are; raise ValueError without a reason."""
    if not reason.strip():
        raise ValueError("a look at judge must have a reason; got none")
    row = {
        "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ"),
        "commit": _commit(),
        "cells": cells,
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
