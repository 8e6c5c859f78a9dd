"""A bound that several owners share: each may hold at most as much as is still free. Pure.

Dynamic thresholds (Choudhury and Hahne, 1998): one owner takes at most half of the bound, two a
third each, n take 1/(n+1) each. What is left free lets another owner begin at once.
"""

from __future__ import annotations


class FairShare:
    """A bound, and each owner's part of it."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0
        self._by_owner: dict[str, int] = {}

    @property
    def free(self) -> int:
        """Return the free part."""
        return self.most - self.held

    def fits(self, owner: str, amount: int) -> bool:
        """Return whether an owner may hold this much more."""
        return self.held_by(owner) + amount <= self.free

    def take(self, owner: str, amount: int) -> None:
        """Add to an owner's part."""
        self.held += amount
        self._by_owner[owner] = self.held_by(owner) + amount

    def give_back(self, owner: str, amount: int) -> None:
        """Subtract from an owner's part."""
        self.held -= amount
        left = self.held_by(owner) - amount
        if left:
            self._by_owner[owner] = left
        else:
            self._by_owner.pop(owner, None)

    def held_by(self, owner: str) -> int:
        """Return an owner's part."""
        return self._by_owner.get(owner, 0)
