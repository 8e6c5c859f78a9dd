"""Namespaces that cannot be listed, the cause, and the time of the next attempt. No I/O.

One of several namespaces may refuse: its RoleBinding is missing, or the namespace is deleted. The
others go on meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 30.0
"""The first is short: after an installation, permissions take a moment to be in force."""


@dataclass(slots=True)
class _Refused:
    why: str
    pause_s: float
    due_s: float


@dataclass(slots=True)
class UnlistedNamespaces:
    """The namespaces whose last LIST failed while that of another one succeeded."""

    _refused: dict[str, _Refused] = field(default_factory=dict)

    def __contains__(self, namespace: object) -> bool:
        """Return whether the last LIST of a namespace failed."""
        return namespace in self._refused

    def why(self) -> Mapping[str, str]:
        """Return the error of each."""
        return {namespace: one.why for namespace, one in self._refused.items()}

    def due(self, now_s: float) -> list[str]:
        """Return those that are to be tried again."""
        return [namespace for namespace, one in self._refused.items() if one.due_s <= now_s]

    def failed(self, namespace: str, why: str, now_s: float, spread: float = 1.0) -> bool:
        """Process a LIST that failed; return whether that is new.

        `spread`, at most 1, shortens the pause, so that several operators do not ask at once.
        """
        known = self._refused.get(namespace)
        pause_s = FIRST_PAUSE_S if known is None else min(LONGEST_PAUSE_S, 2.0 * known.pause_s)
        self._refused[namespace] = _Refused(why, pause_s, now_s + spread * pause_s)
        return known is None or known.why != why

    def listed(self, namespace: str) -> bool:
        """Process a LIST that succeeded; return whether that is new."""
        return self._refused.pop(namespace, None) is not None
