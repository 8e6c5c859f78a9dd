"""States the evidence that determines a tick, as text."""

from __future__ import annotations

from headroom.scaling.state.state import State
from headroom.scaling.values.demand import Demand, DemandKnown


def evidence_notes(state: State, demand: Demand, now_s: float) -> tuple[str, ...]:
    """Return the evidence that determines this tick, as text."""
    found = []
    if demand.known is not DemandKnown.EXACT:
        found.append(demand.detail)
    if state.obstacles.obstacle is not None:
        found.append(state.obstacles.text(now_s))
    late_share = state.budget.late_share
    if state.margin.beta > 0.0 and late_share is not None:
        found.append(f"{100 * late_share:.2g}% of the last hour's requests were late")
    return tuple(found)
