"""The virtual clock: what happens when, in one order for everything that happens at one time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from enum import IntEnum

Action = Callable[[float], None]


class Priority(IntEnum):
    """Of things that happen at the same instant, which come first."""

    PODS = 0
    FAULTS = 1
    SCRAPE = 2
    DECIDE = 3
    SAMPLE = 4


class EventQueue:
    """A queue of actions by time, then turn, then order of entry."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, int, Action]] = []
        self._entered = 0

    def at(self, time_s: float, turn: Priority, action: Action) -> None:
        """Do `action(time_s)` when its time has come."""
        heapq.heappush(self._entries, (time_s, turn, self._entered, action))
        self._entered += 1

    def every(self, period_s: float, turn: Priority, action: Action, *, start_s: float) -> None:
        """Do `action` at start_s and then once per period, without drift."""

        def again(count: int) -> Action:
            def act(now_s: float) -> None:
                self.at(start_s + (count + 1) * period_s, turn, again(count + 1))
                action(now_s)

            return act

        self.at(start_s, turn, again(0))

    @property
    def next_s(self) -> float:
        """When the next action is due; inf without any."""
        return self._entries[0][0] if self._entries else float("inf")

    def run_next(self) -> None:
        """Do what is due next."""
        time_s, _, _, action = heapq.heappop(self._entries)
        action(time_s)
