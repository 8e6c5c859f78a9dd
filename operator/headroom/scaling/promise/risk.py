"""The learned risk level: how cautiously a service must keep and add replicas.

0 is the compromise for a service that keeps its promise; 1 plans for nearly everything that the
last hour has shown. Each late request raises the level and each timely one lowers it, so that the
quantiles settle where the budget is spent and no more, whatever the workload (adaptive conformal
inference: Gibbs and Candes 2021). Misses of every kind count: a service whose jumps, surges and
pauses break its promise plans for a higher quantile of what may follow.
"""

from __future__ import annotations

from dataclasses import dataclass

from headroom.scaling.promise.error_budget import ErrorBudget, Outcomes

GAIN = 2.0
"""Misses of half an hour's error budget raise the level from 0 to 1, once the budget is spent;
while less than half of it is, misses raise nothing."""
FALL = 0.3
"""Timely requests lower the level so much more slowly, and only while the hour's budget is unspent:
an hour without misses by 0.6."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """The level, 0..1."""

    level: float = 0.0

    def observe(
        self, outcomes: Outcomes, budget: ErrorBudget, allowed: float, hour_requests: float = 0.0
    ) -> Risk:
        """Return the level after the outcomes of a tick, which the budget contains already.

        The budget is that of `hour_requests`, if these are more than have ended: in its first
        minutes a service has an hour's budget to spend.
        """
        if budget.late_share is None or outcomes.ended <= 0.0:
            return self
        ended = max(budget.ended, hour_requests)
        excess = (outcomes.late - allowed * outcomes.ended) / (allowed * ended)
        spent = budget.late / ended / allowed
        weight = FALL * max(0.0, 1.0 - spent)
        if excess > 0.0:
            weight = min(1.0, max(0.0, 2.0 * spent - 1.0))
        step = weight * GAIN * excess
        return Risk(level=min(1.0, max(0.0, self.level + step)))

    def between(self, usual: float, cautious: float) -> float:
        """Return the value between two at this level."""
        return usual + self.level * (cautious - usual)
