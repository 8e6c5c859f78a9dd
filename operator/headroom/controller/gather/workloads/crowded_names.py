"""Names that too many objects have as a label, so that a shared LIST would be too large. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable

CROWDED_FOR_S = 600.0
"""Time for which a name that too many objects have is read alone, before a shared LIST is tried
again."""


class CrowdedNames:
    """Times at which each crowded name was met."""

    def __init__(self) -> None:
        self._since_s: dict[str, float] = {}

    def add(self, names: Iterable[str], now_s: float) -> None:
        """Read these names alone from now on, for a while."""
        self._since_s |= dict.fromkeys(names, now_s)

    def has(self, name: str, now_s: float) -> bool:
        """Return whether the name is read alone at this time."""
        if now_s - self._since_s.get(name, -math.inf) < CROWDED_FOR_S:
            return True
        self._since_s.pop(name, None)
        return False
