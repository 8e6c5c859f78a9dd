"""The virtual clock: a queue of events with one defined order at equal times."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from enum import IntEnum

Action = Callable[[float], None]


class Priority(IntEnum):
    """The order of events that happen at the same time."""

    PODS = 0
    FAULTS = 1
    SCRAPE = 2
    DECIDE = 3
    SAMPLE = 4


class EventQueue:
    """A queue of actions, ordered by time, then priority, then insertion."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, int, Action]] = []
        self._entered = 0

    def at(self, time_s: float, priority: Priority, action: Action) -> None:
        """Schedule `action(time_s)`."""
        heapq.heappush(self._entries, (time_s, priority, self._entered, action))
        self._entered += 1

    def every(self, period_s: float, priority: Priority, action: Action, *, start_s: float) -> None:
        """Schedule `action` at start_s and then once per period, without drift."""

        def again(count: int) -> Action:
            def act(now_s: float) -> None:
                self.at(start_s + (count + 1) * period_s, priority, again(count + 1))
                action(now_s)

            return act

        self.at(start_s, priority, again(0))

    @property
    def next_s(self) -> float:
        """The time of the next action; inf without any."""
        return self._entries[0][0] if self._entries else float("inf")

    def run_next(self) -> None:
        """Run the next action."""
        time_s, _, _, action = heapq.heappop(self._entries)
        action(time_s)
