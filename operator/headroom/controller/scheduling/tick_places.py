"""The places of concurrent ticks: each namespace has a share, and those that wait take turns. Pure.

What a tick waits for is shared by namespaces already: lists of the API server, room for pages, time
to parse them. A namespace that uses up its part waits there, at most until the deadline of its
ticks. With one line for all, its ticks would take every place meanwhile, and all others would wait
as well.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import NamedTuple

SHARE = 8
"""A namespace may have this many times as many places as are free (dynamic thresholds, Choudhury
and Hahne, 1998): one takes eight ninths, n take 8/(8n+1) each. A cluster with one namespace loses
little, and what is free lets another one begin at once."""


class Due(NamedTuple):
    """A service that is due."""

    owner: str
    due_s: float
    uid: str


class TickPlaces:
    """Owners of places, and those that wait for one."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._held: dict[str, int] = {}
        self._waiting: OrderedDict[str, deque[Due]] = OrderedDict()
        """Waiting evaluations by owner, the one whose turn is next first."""

    def fits(self, owner: str) -> bool:
        """Return whether an owner may have one more place."""
        return self._held.get(owner, 0) < SHARE * self._free

    def wait(self, owner: str, due_s: float, uid: str) -> None:
        """Add a service that is due behind the others of its owner."""
        self._waiting.setdefault(owner, deque()).append(Due(owner, due_s, uid))

    def granted(self) -> Iterator[Due]:
        """Yield those that may begin, one of each owner in turn; `take` the place of each."""
        passed = 0
        while passed < len(self._waiting):
            owner, own = next(iter(self._waiting.items()))
            if not self.fits(owner):
                self._waiting.move_to_end(owner)
                passed += 1
                continue
            due = own.popleft()
            if own:
                self._waiting.move_to_end(owner)
            else:
                del self._waiting[owner]
            passed = 0
            yield due

    def take(self, owner: str) -> None:
        """Count a place."""
        self._free -= 1
        self._held[owner] = self._held.get(owner, 0) + 1

    def give_back(self, owner: str) -> None:
        """Count it no longer."""
        self._free += 1
        self._held[owner] -= 1
        if not self._held[owner]:
            del self._held[owner]
