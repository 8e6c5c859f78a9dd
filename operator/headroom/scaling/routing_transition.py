"""A change of routing moves no replica by itself.

The former tables decide until the new ones have been corrected by what was measured under the new
routing. Tables of another routing differ by up to a half, and so does what they leave unsaid; the
correction learnt beside the former ones says nothing of the new.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headroom.scaling.latency.correction import Correction
from headroom.scaling.values import Routing

LATEST_S = 1800.0
"""Then the new tables decide, even where too little was measured to correct them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingTransition:
    """Which routing was seen last, and which one still decides."""

    seen: Routing | None = None
    """None before the first tick: what is found at a start is not a change."""
    former: Routing | None = None
    """What decides meanwhile; None where nothing has changed, or it is settled."""
    correction: Correction = field(default_factory=Correction)
    """That of the former tables, as it stood."""
    since_s: float = 0.0

    def observe(
        self, routing: Routing, correction: Correction, now_s: float, constant_s: float
    ) -> tuple[RoutingTransition, Correction]:
        """Take in the routing of this tick; return with it the correction that is learnt on.

        Settled is what was corrected for `constant_s`. A change back takes up the former
        correction.
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
