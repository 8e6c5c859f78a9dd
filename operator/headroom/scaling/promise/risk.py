"""The learned risk level: how far ahead of proof a service must keep and add replicas.

0 is the compromise for a service that keeps its promise; 1 plans for nearly everything that the
last hour has shown. It follows the burn rate of the hour's error budget, misses of every kind
included: a service whose jumps, surges and lulls break its promise plans for a higher quantile of
what may follow and holds for longer, until the budget lasts.
"""

from __future__ import annotations

from dataclasses import dataclass

from headroom.scaling.promise.error_budget import ErrorBudget

RISE_S = 1800.0
"""At twice the budget the level rises from 0 to 1 in this time; three times as fast at most."""
FALL = 0.3
"""The level falls this much more slowly than it rises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """The level, 0..1."""

    level: float = 0.0

    def observe(self, budget: ErrorBudget, allowed: float, elapsed_s: float) -> Risk:
        """Return the level after a tick."""
        late_share = budget.late_share
        if late_share is None:
            return self
        excess = late_share / allowed - 1.0
        rise = min(3.0, excess) if excess > 0 else FALL * excess
        return Risk(level=min(1.0, max(0.0, self.level + rise * elapsed_s / RISE_S)))

    def between(self, usual: float, cautious: float) -> float:
        """Return the value between two at this level."""
        return usual + self.level * (cautious - usual)
