"""Ports of an election: clocks, metrics, and a note for the next leader."""

from __future__ import annotations

from typing import Protocol


class Clocks(Protocol):
    """The time of day, and a clock that goes on while the machine sleeps."""

    def now_s(self) -> float:
        """Seconds since the epoch."""
        ...

    def elapsed_s(self) -> float:
        """Seconds since some moment; never set, and never stopped."""
        ...


class Observer(Protocol):
    """Shows metrics of the election."""

    def led(self, leading: bool, transitions: int) -> None:
        """Show whether this process leads, and how often the holder has changed."""
        ...


class Note(Protocol):
    """Note of a leader in the Lease for the next one."""

    text: str
    """Annotation as last read."""

    def written(self) -> str:
        """Return the annotation for the Lease; empty to leave it as it is."""
        ...
