"""The record of every look at `judge`: when, at which commit, how many cells, and why."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

FILE = Path(__file__).parent / "looks.jsonl"


def record(cells: int, reason: str) -> None:
    """Add a look; the reason must be given.

    Raises:
        ValueError: there is no reason.
    """
    if not reason.strip():
        raise ValueError("a look at judge must have a reason: --why TEXT; got none")
    root = Path(__file__).parents[2]
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")
    line = {"at": at, "commit": commit.strip(), "cells": cells, "reason": reason}
    with FILE.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
