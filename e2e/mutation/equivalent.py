"""PURE. Bugs that no behaviour shows, each with its reason. They count as not noticed all the same.

A line is named by its text, wherever it stands in its module.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import NamedTuple


class Equivalent(NamedTuple):
    """What may be broken without anybody being able to tell."""

    module: str
    """The end of its path."""
    sound: str
    """A part of the line that is broken."""
    reason: str


RESOLUTION = "resolution of a numerical method: the result changes by less than the model's error"
EQUIVALENT: Sequence[Equivalent] = (
    Equivalent("scaling/many_servers.py", "STEPS = 64", RESOLUTION),
    Equivalent("scaling/many_servers.py", "HALVINGS = 22", RESOLUTION),
)


def reason(path: str, sound: str, broken: str) -> str:
    """Say why nobody can tell the broken text of a module from the sound one; empty: one can."""
    changed = [
        line[1:]
        for line in difflib.unified_diff(sound.splitlines(), broken.splitlines(), n=0, lineterm="")
        if line.startswith("-") and not line.startswith("---")
    ]
    known = (
        one.reason
        for one in EQUIVALENT
        if path.endswith(one.module) and all(one.sound in line for line in changed)
    )
    return next(known, "")
