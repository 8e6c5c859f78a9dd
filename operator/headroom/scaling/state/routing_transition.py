"""Keeps the replica count steady while the routing of a service changes.

The latency tables of the former routing decide until the new ones have been corrected by
measurements under the new routing. Tables of two routings differ by up to a half, and so do their
errors; the correction learned for the former tables says nothing about the new ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headroom.scaling.latency.correction import Correction
from headroom.scaling.values.policy import Routing

LATEST_S = 1800.0
"""After this time the new tables decide, even if too little was measured to correct them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingTransition:
    """The routing of the last tick, and the routing whose tables still decide."""

    seen: Routing | None = None
    """None before the first tick: the routing found at a start is not a change."""
    former: Routing | None = None
    """The routing that still decides; None if nothing changed or the transition is complete."""
    correction: Correction = field(default_factory=Correction)
    """The correction of the former tables at the time of the change."""
    since_s: float = 0.0

    def observe(
        self, routing: Routing, correction: Correction, now_s: float, constant_s: float
    ) -> tuple[RoutingTransition, Correction]:
        """Return the transition after this tick's routing, and the correction to continue with.

        A transition is complete once the new tables were corrected for `constant_s`. A change back
        to the former routing restores its correction.
        """
        if self.seen is None or routing is self.seen:
            settled = correction.learned_s >= constant_s or now_s - self.since_s >= LATEST_S
            if self.seen is None or (self.former is not None and settled):
                return RoutingTransition(seen=routing), correction
            return self, correction
        before = self.former or self.seen
        kept = correction if self.former is None else self.correction
        if routing is before:
            return RoutingTransition(seen=routing), kept
        changed = RoutingTransition(seen=routing, former=before, correction=kept, since_s=now_s)
        return changed, Correction()

    def effective_routing(self, routing: Routing, correction: Correction) -> tuple[Routing, float]:
        """Return the routing whose tables decide now, and the factor on their latency."""
        if self.former is None:
            return routing, correction.factor
        return self.former, self.correction.factor
