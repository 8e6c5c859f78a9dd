"""PURE. When the device will be free: what it was given, and what it takes between batches."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

GAP_WEIGHT = 0.05
LARGEST_GAP_S = 0.01


class Given(NamedTuple):
    """A batch that left the queue, and how long it is predicted to take."""

    sealed_s: float
    seconds: float


class DeviceTime:
    """Batches given and not yet reported back, oldest first."""

    def __init__(self) -> None:
        self._given: deque[Given] = deque()
        self._ended_s = float("-inf")
        self.gap_s = 0.0
        """Mean time between the end of a batch and the begin of one that waited for it."""

    def assign(self, now_s: float, seconds: float) -> None:
        """A batch leaves the queue for the device."""
        self._given.append(Given(now_s, seconds))

    def complete(self, began_s: float, seconds: float, *, waited: bool) -> None:
        """A batch is over, and so is all that was given before it began.

        `waited`: it could have begun when the one before ended.
        """
        while self._given and self._given[0].sealed_s <= began_s:
            self._given.popleft()
        if waited and self._ended_s <= began_s:
            gap_s = min(LARGEST_GAP_S, began_s - self._ended_s)
            self.gap_s += GAP_WEIGHT * (gap_s - self.gap_s)
        self._ended_s = began_s + seconds

    @property
    def ended_s(self) -> float:
        """When the last batch that was reported ended."""
        return self._ended_s

    @property
    def idle(self) -> bool:
        """Whether it has nothing."""
        return not self._given

    def free_in_s(self, now_s: float) -> float:
        """Seconds until all that was given is done.

        A batch that overruns its prediction is expected to overrun it by as much again: it may have
        met a device that has become slow, or hangs.
        """
        free_s = now_s
        for number, given in enumerate(self._given):
            end_s = (given.sealed_s if not number else max(given.sealed_s, free_s)) + given.seconds
            free_s = now_s + abs(end_s - now_s) if not number else end_s
        return free_s - now_s
