"""The least accelerators that a pool held in the last seconds. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

SETTLED_S = 6.0
"""Services are seen one after the other, so that for a tick an accelerator that changes hands may
count twice; for three ticks it does not."""


@dataclass(slots=True)
class SettledMinimum:
    """The least of the last `SETTLED_S`, in amortized constant time.

    While a thousand services are seen for the first time the total rises with each, and all that it
    was in these seconds has to be kept.
    """

    _rising: deque[tuple[float, int]] = field(default_factory=deque)
    """(time, value), oldest first; values rise."""

    def add(self, now_s: float, value: int) -> None:
        """Note the value at this time."""
        rising = self._rising
        while rising and rising[-1][1] >= value:
            rising.pop()
        rising.append((now_s, value))
        while rising[0][0] < now_s - SETTLED_S:
            rising.popleft()

    @property
    def value(self) -> int:
        """The least of the last seconds; 0 before the first."""
        return self._rising[0][1] if self._rising else 0
