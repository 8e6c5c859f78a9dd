"""Puts the whole decision of a tick together: its reason, its demand, and notes on evidence."""

from __future__ import annotations

from headroom.scaling.evidence.notes import evidence_notes
from headroom.scaling.explanation import generation_explanation
from headroom.scaling.explanation.explanation import explain
from headroom.scaling.frozen import replace
from headroom.scaling.limits.limit_input import LimitInput
from headroom.scaling.rules.rule_results import RuleResults
from headroom.scaling.state.state import State
from headroom.scaling.steps.tick_model import TickModel
from headroom.scaling.values.decision import Decision, LimitApplied
from headroom.scaling.values.demand import Demand


def explain_tick(
    model: TickModel,
    state: State,
    limit_input: LimitInput,
    results: RuleResults,
    replicas: int,
    applied: tuple[LimitApplied, ...],
    demand: Demand,
) -> Decision:
    """Return the decision with its reason and all that it follows from."""
    now_s = limit_input.now_s
    notes = evidence_notes(state, demand, now_s)
    decision = explain(
        limit_input, state, results, replicas, applied, model.serving, model.target_s, notes
    )
    decision = replace(
        decision,
        demand=demand,
        obstacle=state.obstacles.obstacle,
        obstacle_detail=state.obstacles.text(now_s),
        margin=state.margin.replicas(max(1, results.carries)) / max(1, results.carries),
        late_share=state.budget.late_share,
        left_out=(*state.contradictions.left_out(now_s), *state.repeated_pages.named),
    )
    return generation_explanation.described(model.policy, state, model.generation, decision)
