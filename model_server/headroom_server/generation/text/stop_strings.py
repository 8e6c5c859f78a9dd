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

    __slots__ = ("_held", "_stops")

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""

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
        """Return the length of the longest end of `text` that begins a stop string.

        It is searched for each time: a table of all beginnings takes 0.8 MB for 16 stop strings of
        256 characters, and a request may have 128 choices.
        """
        return max((_overlap(text, stop) for stop in self._stops), default=0)


def _overlap(text: str, stop: str) -> int:
    at = text.find(stop[0], max(0, len(text) - len(stop) + 1))
    while at >= 0 and not stop.startswith(text[at:]):
        at = text.find(stop[0], at + 1)
    return len(text) - at if at >= 0 else 0
