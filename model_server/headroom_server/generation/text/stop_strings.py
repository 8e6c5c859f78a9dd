"""PURE. Stop strings: text is held back for as long as it may be the beginning of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Released(NamedTuple):
    """Text that may be sent."""

    text: str
    stopped: str | None = None
    """The stop string that ended the answer."""


class StopStrings:
    """Finds the stop string that is complete first, however the text is cut into pieces.

    Of several that are complete at the same character the longest counts.
    """

    __slots__ = ("_ends", "_held", "_longest", "_prefixes", "_stops")

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self._prefixes = frozenset(stop[:size] for stop in stops for size in range(1, len(stop)))
        self._ends = frozenset(prefix[-1] for prefix in self._prefixes)
        self._longest = max((len(stop) - 1 for stop in stops), default=0)

    def push(self, text: str) -> Released:
        """Return what can no longer be part of a stop string; after a stop, nothing follows."""
        if not self._stops:
            return Released(text)
        text = self._held + text
        found = [(at + len(stop), at, stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            _, at, stop = min(found)
            self._held = ""
            return Released(text[:at], stop)
        held = self._beginning(text)
        self._held = text[len(text) - held :]
        return Released(text[: len(text) - held])

    def flush(self) -> str:
        """Return what was held back at the end of the answer."""
        held, self._held = self._held, ""
        return held

    def _beginning(self, text: str) -> int:
        """Return the length of the longest end of `text` that begins a stop string."""
        if not text or text[-1] not in self._ends:
            return 0
        for size in range(min(len(text), self._longest), 0, -1):
            if text[-size:] in self._prefixes:
                return size
        return 0
