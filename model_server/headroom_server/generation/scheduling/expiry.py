"""PURE. Which deadlines come next."""

from __future__ import annotations

import math
from heapq import heappop, heappush

from headroom_server.generation.scheduling.sequences import LiveSequence, Phase


class Expiry:
    """The deadlines of accepted requests, earliest first."""

    __slots__ = ("_due",)

    def __init__(self) -> None:
        self._due: list[tuple[float, int, bool, LiveSequence]] = []

    def watch(self, sequence: LiveSequence) -> None:
        """Add an accepted request's deadlines."""
        request = sequence.request
        if request.first_token_deadline_s is not None:
            heappush(self._due, (request.first_token_deadline_s, request.key, True, sequence))
        if request.deadline_s is not None:
            heappush(self._due, (request.deadline_s, request.key, False, sequence))

    @property
    def next_s(self) -> float:
        """Time of the next deadline that matters; infinity if there is none."""
        due = self._due
        while due and _met(due[0][3], first=due[0][2]):
            heappop(due)
        return due[0][0] if due else math.inf

    def expired(self, now_s: float) -> list[LiveSequence]:
        """Remove and return the sequences whose deadline passed."""
        found: dict[int, LiveSequence] = {}
        while self.next_s < now_s:
            sequence = heappop(self._due)[3]
            found[sequence.key] = sequence
        return list(found.values())


def _met(sequence: LiveSequence, *, first: bool) -> bool:
    if sequence.phase is Phase.ENDED:
        return True
    return first and sequence.first_token_s is not None
