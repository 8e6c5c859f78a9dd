"""Keeps the highest load that a replica has carried, beyond which its cost is a guess. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

ENOUGH = 0.35
"""Share of a replica's maximum load that must have been seen; estimates from less are
optimistic."""
DOUBLED = 2.0
"""Factor by which a removal may raise the requests in flight per replica until then."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenLoad:
    """The highest load of one replica."""

    share: float = 0.0
    """Share of the highest rate that a replica takes, 0 to 1."""
    in_flight: float = 0.0
    """Most requests in flight per replica."""

    @property
    def is_enough(self) -> bool:
        """Whether the seen load is high enough for the cost at high loads to follow from it."""
        return self.share >= ENOUGH

    def observe(self, share: float, in_flight: float) -> SeenLoad:
        """Return the highest load after a replica got this share, with this many in flight."""
        highest = max(min(1.0, share), self.share)
        if highest == self.share and in_flight <= self.in_flight:
            return self
        return SeenLoad(share=highest, in_flight=max(in_flight, self.in_flight))

    def least_replicas(self, in_flight: float) -> int:
        """Return the fewest replicas whose load is not far beyond the seen one.

        Until a replica had ENOUGH, the cost of further sequences is that of usual engines. So each
        removal at most doubles what is in flight per replica, and the next one comes after the cost
        was learned there. Worked: 12 in flight, at most 1.5 per replica: 4 replicas.
        """
        if self.is_enough:
            return 0
        return math.ceil(in_flight / (DOUBLED * max(1.0, self.in_flight)) - _ROUNDING)
