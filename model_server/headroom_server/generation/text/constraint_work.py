"""The work of constrained answers: a bound for each, and one for all that are generated.

The library that computes masks makes what it remembers of an answer while it computes: 5.5 KiB per
millisecond for the worst grammar that was found. It does not say how much it holds, so processor
time stands for memory. The masks of all answers in an iteration are computed one after the other:
an answer that takes long makes every other one wait.
"""

from __future__ import annotations

from threading import RLock

AT_ONCE_S = 0.25
"""Time of an answer, for tables that are made once."""
PER_TOKEN_S = 0.001
"""A mask of an ordinary schema takes 0.05 ms with 128 000 tokens."""
MOST_S = 30.0
"""Time of all answers that are being generated: 165 MiB. One may take as much as is left."""


class Work:
    """The work of one answer."""

    __slots__ = ("_all", "_may_s", "spent_s")

    def __init__(self, of_all: ConstraintWork) -> None:
        self._all = of_all
        self._may_s = AT_ONCE_S
        self.spent_s = 0.0

    def spend(self, seconds: float) -> None:
        """Count work that was done."""
        with self._all.lock:
            self.spent_s += seconds
            self._all.spent_s += seconds

    def step(self) -> bool:
        """Return whether the answer may go on after one more token."""
        self._may_s += PER_TOKEN_S
        return self.spent_s <= min(self._may_s, MOST_S - self._all.spent_s)

    def close(self) -> None:
        """Give everything back."""
        with self._all.lock:
            self._all.spent_s -= self.spent_s
            self.spent_s = 0.0


class ConstraintWork:
    """The work of all answers that are being generated."""

    def __init__(self) -> None:
        self.spent_s = 0.0
        self.lock = RLock()
        """Answers end in one thread while another generates; and within it, when memory is
        collected."""

    def begun(self) -> Work:
        """Return the work of a new answer."""
        return Work(self)
