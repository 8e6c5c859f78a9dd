"""Predicts when a device is free: its assigned batches, and the gap between batches. Pure."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

GAP_WEIGHT = 0.05
LARGEST_GAP_S = 0.01


class Given(NamedTuple):
    """An assigned batch and its predicted duration."""

    sealed_s: float
    seconds: float


class DeviceTime:
    """Batches assigned and not yet completed, oldest first."""

    def __init__(self) -> None:
        self._given: deque[Given] = deque()
        self._ended_s = float("-inf")
        self.gap_s = 0.0
        """Mean time from the end of a batch to the start of one that was already waiting."""

    def assign(self, now_s: float, seconds: float) -> None:
        """Assign a batch to the device."""
        self._given.append(Given(now_s, seconds))

    def complete(self, began_s: float, seconds: float, *, waited: bool) -> None:
        """Complete a batch, and everything that was assigned before it began.

        `waited`: it could have begun when the previous one ended.
        """
        while self._given and self._given[0].sealed_s <= began_s:
            self._given.popleft()
        if waited and self._ended_s <= began_s:
            gap_s = min(LARGEST_GAP_S, began_s - self._ended_s)
            self.gap_s += GAP_WEIGHT * (gap_s - self.gap_s)
        self._ended_s = began_s + seconds

    @property
    def ended_s(self) -> float:
        """End of the last completed batch."""
        return self._ended_s

    @property
    def idle(self) -> bool:
        """Whether no batch is assigned."""
        return not self._given

    def free_in_s(self, now_s: float) -> float:
        """Return the seconds until all assigned batches are done.

        A batch that exceeds its prediction is expected to exceed it by as much again: the device
        may have become slow, or hang.
        """
        free_s = now_s
        for number, given in enumerate(self._given):
            end_s = (given.sealed_s if not number else max(given.sealed_s, free_s)) + given.seconds
            free_s = now_s + abs(end_s - now_s) if not number else end_s
        return free_s - now_s
