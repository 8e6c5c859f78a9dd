"""First tokens that are late whatever the replicas teach neither risk nor margin."""

from __future__ import annotations

import pytest

from headroom.scaling.generation.learning.learned import MOST_EXPECTED, GenerationState
from headroom.scaling.generation.replica_model.first_token import late_alone
from headroom.scaling.generation.replica_model.work import work_of
from headroom.scaling.promise.error_budget import ErrorBudget, Outcomes
from headroom.scaling.promise.risk import Risk
from headroom.scaling.values.tokens import IterationCost
from support.generating_plants import LLAMA_8B, requests

L40S = IterationCost(
    fixed_s=2.12e-2,
    prompt_token_s=5.94e-5,
    sequence_s=3.78e-5,
    context_token_s=2.12e-7,
    prompt_product_s=3.66e-9,
)
"""Qwen3 8B on an L40S."""


@pytest.mark.parametrize(
    ("target_s", "share"),
    [(3.0, 0.041), (1e9, 0.0), (0.01, 1.0)],
)
def test_prompts_late_alone_are_those_whose_own_time_exceeds_the_target(
    target_s: float, share: float
) -> None:
    """Drawn: of 10^6 lognormal prompts of 8300 tokens and cv 1.2, 4.1 % take more than 3 s."""
    work = work_of(L40S, requests(8300, 400, prompt_cv=1.2))
    assert late_alone(work, target_s) == pytest.approx(share, abs=0.002)


def test_equal_prompts_are_late_alone_all_or_none() -> None:
    work = work_of(LLAMA_8B, requests(4000, 100))
    assert (late_alone(work, 0.2), late_alone(work, 0.05)) == (0.0, 1.0)


def test_outcomes_without_prompts_late_alone_lose_as_many_and_no_more() -> None:
    state, late = GenerationState(), 0.0
    for number in range(1000):
        ticks = Outcomes(ended=4.0, late=1.0 if number % 5 == 0 else 0.0)
        state, outcomes = state.without_late_alone(ticks, 0.04)
        late += outcomes.late
    assert late == pytest.approx(200 - 160, abs=2)
    state = GenerationState()
    for _ in range(1000):
        state, _ = state.without_late_alone(Outcomes(ended=4.0, late=0.0), 0.04)
    assert state.late_alone == MOST_EXPECTED


def test_risk_of_a_service_in_its_first_minutes_has_an_hours_budget() -> None:
    """Ten of the first 100 requests are late: of 3600 an hour, of which 180 may be, not much."""
    outcomes = Outcomes(ended=100.0, late=10.0)
    budget = ErrorBudget(ended=100.0, late=10.0)
    assert Risk().observe(outcomes, budget, 0.05).level == 1.0
    assert Risk().observe(outcomes, budget, 0.05, 3600.0).level == 0.0
