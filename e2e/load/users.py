"""A closed loop: users who wait for each answer, think, and ask again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Users:
    """A number of users, until the duration ends."""

    count: int
    think_s: float
    """Mean pause between an answer and the next request, exponentially distributed."""
    duration_s: float
    seed: int = 1

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ValueError: the message names the rule and the value.
        """
        if self.count < 1:
            raise ValueError(f"users must be at least 1; got {self.count}")
        if not self.think_s > 0.0:
            raise ValueError(f"a user's mean pause must be above 0 s; got {self.think_s:g}")
        if not self.duration_s > 0.0:
            raise ValueError(f"the duration must be above 0 s; got {self.duration_s:g}")

    def pauses_s(self, index: int) -> Iterator[float]:
        """Return the pauses of one user, without end; a user begins with a pause."""
        chance = random.Random(f"{self.seed}.{index}")
        while True:
            yield chance.expovariate(1.0 / self.think_s)
