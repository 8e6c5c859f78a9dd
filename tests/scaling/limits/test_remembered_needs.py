"""Holds after flaps, and a forecast that the learned risk level raises."""

from __future__ import annotations

import pytest

from headroom.scaling.forecast.forecast import Expected, Rates
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.promise.error_budget import ErrorBudget
from headroom.scaling.promise.margin import NO_MARGIN, Margin
from headroom.scaling.rules.rule_inputs import RuleInputs
from headroom.scaling.rules.rule_results import RuleResults, evaluate_rules
from headroom.scaling.state.state import State
from headroom.scaling.steps.limiting import remember
from headroom.scaling.values.decision import ReplicaCounts
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.signals import Freshness, Signal, Signals
from support.fakes_scaling import policy

COST = CostModel(fixed_s=0.25, per_item_s=0.0, max_batch=1)
USUAL_RPS, RISKED_RPS = 15.0, 60.0
SERVICE = policy(latency_target_s=1.5)
SIGNALS = Signals(
    arrival_rps=Signal(freshness=Freshness.FRESH, value=USUAL_RPS, age_s=0.0),
    waiting=Signal(freshness=Freshness.FRESH, value=0.0, age_s=0.0),
)


def expected(rate_rps: float) -> Expected:
    rates = Rates(for_ceiling_rps=rate_rps, for_latency_rps=rate_rps)
    return Expected(later=rates, most=rates, burst_rps=None)


def results(
    risked: Expected, usual: Expected | None = None, *, margin: Margin = NO_MARGIN
) -> RuleResults:
    return evaluate_rules(
        RuleInputs(
            policy=SERVICE,
            expected=risked,
            without_risk=usual,
            signals=SIGNALS,
            tail=TailLatency(cost=COST, percentile=0.95),
            counts=ReplicaCounts(ready=6),
            target_s=1.5,
            margin=margin,
        )
    )


@pytest.mark.parametrize("margin", [NO_MARGIN, Margin(beta=2.0)])
def test_need_without_risk_is_that_of_the_usual_forecast(margin: Margin) -> None:
    usual = results(expected(USUAL_RPS), margin=margin)
    risked = results(expected(RISKED_RPS), expected(USUAL_RPS), margin=margin)
    assert usual.needed_without_risk == usual.needed_by_arrivals
    assert risked.needed_without_risk == usual.needed_by_arrivals
    assert risked.needed_by_arrivals > risked.needed_without_risk


@pytest.mark.parametrize(
    ("late", "ended", "risk_counts"),
    [
        pytest.param(0.0, 1000.0, False, id="unspent"),
        pytest.param(39.0, 1000.0, False, id="four fifths of 5 % are 40 of 1000"),
        pytest.param(41.0, 1000.0, True, id="spent"),
        pytest.param(0.0, 10.0, True, id="too few requests to know"),
    ],
)
def test_holds_after_flaps_keep_what_the_risk_level_adds_only_while_the_budget_is_spent(
    late: float, ended: float, risk_counts: bool
) -> None:
    found = results(expected(RISKED_RPS), expected(USUAL_RPS))
    state = State(budget=ErrorBudget(late=late, ended=ended))
    after = remember(SERVICE, state, SIGNALS, found, 1000.0)
    kept = found.needed_by_arrivals if risk_counts else found.needed_without_risk
    assert after.arrivals_high.value == kept
    assert after.needed_high.value == found.needed, "the usual hold keeps all"
