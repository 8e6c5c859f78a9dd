"""Evaluates the rules with the assumptions of a tick and the learned values of the service."""

from __future__ import annotations

from collections.abc import Sequence

from headroom.scaling.forecast.forecast import Expected
from headroom.scaling.promise.margin import NO_MARGIN
from headroom.scaling.promise.reserve import NO_RESERVE
from headroom.scaling.rules.rule_inputs import RuleInputs
from headroom.scaling.rules.rule_results import RuleResults, evaluate_rules
from headroom.scaling.state.state import State
from headroom.scaling.steps import generation_rules, waiting
from headroom.scaling.steps.tick_model import TickModel
from headroom.scaling.values.decision import Recommendation, ReplicaCounts
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.signals import Signals


def recommend(
    model: TickModel,
    risked: Policy,
    state: State,
    signals: Signals,
    expected: Expected | None,
    without_risk: Expected | None,
    hidden: Recommendation | None,
    serving: ReplicaCounts,
    ready: Sequence[str],
) -> RuleResults:
    """Evaluate the rules; while an obstacle is seen, values learned from misses do not count."""
    hindered, claim, last_s = state.obstacles.obstacle is not None, model.claim, state.last_s
    return evaluate_rules(
        RuleInputs(
            policy=risked,
            expected=expected,
            without_risk=without_risk,
            signals=signals,
            tail=model.serving,
            counts=serving,
            target_s=model.target_s,
            backlogs=waiting.backlogs_of(model.policy, state, model.serving, ready),
            hidden=hidden,
            margin=NO_MARGIN if hindered else state.margin,
            reserve=NO_RESERVE if hindered else state.reserve,
            usual=generation_rules.usual(model.policy, state, model.generation),
            start_s=state.cold_starts.assumed_s,
            understated=state.contradictions.understated,
            full_batches_only=state.learner.saw_full_batches_only(claim),
            settled=last_s is not None
            and last_s - state.ready_since_s >= model.policy.stable_window_s,
            parallel_requests=None if claim is None else claim.max_batch * claim.slots,
        )
    )
