"""The deadlines of accepted requests, earliest first. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from heapq import heappop, heappush

from headroom_server.generation.scheduling.sequences import LiveSequence


class Expiry:
    """The deadlines of accepted requests, earliest first.

    A request that has ended leaves a few bytes here, and those only until they are too many: its
    deadline may be a day away, behind that of one that runs.
    """

    __slots__ = ("_due", "_live")

    def __init__(self, live: Mapping[int, LiveSequence]) -> None:
        """`live` has the requests that have not ended, by key."""
        self._live = live
        self._due: list[tuple[float, int, bool]] = []

    def watch(self, sequence: LiveSequence) -> None:
        """Add a live request's deadlines."""
        request = sequence.request
        if request.first_token_deadline_s is not None:
            heappush(self._due, (request.first_token_deadline_s, request.key, True))
        if request.deadline_s is not None:
            heappush(self._due, (request.deadline_s, request.key, False))
        if len(self._due) > 64 + 4 * len(self._live):
            self._due = sorted(one for one in self._due if not self._met(one))

    @property
    def next_s(self) -> float:
        """Time of the next deadline that matters; infinity if there is none."""
        due = self._due
        while due and self._met(due[0]):
            heappop(due)
        return due[0][0] if due else math.inf

    def expired(self, now_s: float) -> list[LiveSequence]:
        """Remove and return the sequences whose deadline passed."""
        found: dict[int, LiveSequence] = {}
        while self.next_s < now_s:
            key = heappop(self._due)[1]
            found[key] = self._live[key]
        return list(found.values())

    def _met(self, due: tuple[float, int, bool]) -> bool:
        """Return whether the request has ended, or has its first token, if that is due."""
        _, key, first = due
        sequence = self._live.get(key)
        return sequence is None or (first and sequence.first_token_s is not None)
