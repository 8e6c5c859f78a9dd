"""The pause before a watch restarts: doubled each time, until a watch has lasted."""

from __future__ import annotations

from dataclasses import dataclass, field

HEALTHY_AFTER_S = 30.0
"""Longer than a proxy or an API server that refuses watches lets one live."""


@dataclass(slots=True)
class RestartPause:
    """The pauses of one watch."""

    shortest_s: float
    longest_s: float
    _next_s: float = field(init=False)

    def __post_init__(self) -> None:
        """Begin with the shortest."""
        self._next_s = self.shortest_s

    def after(self, lasted_s: float) -> float:
        """Return the pause, in seconds, after a watch that lasted this long, however it ended.

        A LIST that succeeds says nothing about the watch, so only a watch that lasted restores the
        shortest pause.
        """
        if lasted_s >= HEALTHY_AFTER_S:
            self._next_s = self.shortest_s
        pause_s = self._next_s
        self._next_s = min(2.0 * pause_s, self.longest_s)
        return pause_s
