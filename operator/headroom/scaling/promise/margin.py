"""The learned margin: spare replicas that a service's bursts need and the model does not know.

Square-root staffing: replicas = R + beta sqrt(R), where R replicas carry the counted arrivals by
the model (Halfin and Whitt 1981). Random arrivals need more spare the larger the service is, but
less than in proportion. beta is learned by integral action on the promise: while the load is
steady, R replicas are ready and nothing is starting, and still more requests miss than the budget
allows, it rises by a step that grows with the burn rate. The next step waits for the replicas of
the last. Three steps in a row that change nothing are undone, and are the last ones: something else
is slow. Where nearly all requests miss, the reason is no burst, and there is no step. While the
hour's budget is unspent the margin fades slowly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from headroom.scaling.frozen import replace
from headroom.scaling.promise.error_budget import ErrorBudget

STEP = 0.15
"""Share of the ready replicas, per unit of burn rate above 1; at most as many again, at least one.
Worked: 10 ready, three times the budget: 3 more."""
NEARLY_ALL = 0.95
"""Share of the requests: where more miss, they fail, or an idle replica is too slow. Clumps that
find too few replicas may make two thirds of all requests miss."""
LARGEST = 64.0
FADE_S = 4 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """beta of square-root staffing."""

    beta: float = 0.0
    burn: float = math.inf
    """Burn rate at the last step; after steps without effect, before the first of them."""
    vain: int = 0
    """Steps in a row after which hardly fewer requests missed."""
    before: float = 0.0
    """beta before these steps."""

    def replicas(self, carrying: int) -> int:
        """Return the replicas with the margin, where `carrying` carry the counted arrivals."""
        if self.beta <= 0.0 or carrying <= 0:
            return carrying
        return math.ceil(carrying + self.beta * math.sqrt(carrying) - _ROUNDING)

    def observe(
        self, budget: ErrorBudget, allowed: float, elapsed_s: float, *, carrying: int, ready: int
    ) -> tuple[Margin, ErrorBudget]:
        """Return the margin after a tick, and the budget without the evidence that it has used.

        `carrying` is R for the present rate, 0 while the margin must not rise.
        """
        beta = self.beta * math.exp(-budget.unspent(allowed) * elapsed_s / FADE_S)
        burn = budget.steady_burn(allowed) if carrying > 0 else 0.0
        if burn <= 1.0 or self.vain >= _MOST_VAIN:
            within = budget.late_share is not None and budget.late_share < allowed
            return replace(self, beta=beta, vain=0 if within else self.vain), budget
        if burn * allowed > NEARLY_ALL:
            return replace(self, beta=beta), budget.without_evidence()
        vain = self.vain + 1 if burn > _HARDLY_FEWER * self.burn else 0
        before = self.before if vain else beta
        if vain == _MOST_VAIN:
            undone = Margin(beta=min(beta, before), burn=burn, vain=vain)
            return undone, budget.without_evidence()
        more = max(1.0, ready * min(1.0, STEP * (burn - 1.0)))
        beta = (ready + more - carrying) / math.sqrt(carrying)
        beta = min(LARGEST, max(beta, self.beta))
        burn = self.burn if vain else burn
        return Margin(beta=beta, burn=burn, vain=vain, before=before), budget.without_evidence()


_HARDLY_FEWER = 0.95
_MOST_VAIN = 3


_ROUNDING = 0.05
"""Rounding tolerance in replicas, so that a fading margin saves a whole replica in time."""

NO_MARGIN = Margin()
