"""What-if with other promises on tokens: the decision, computed again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.console.pages import formatting
from headroom.console.pages.decision import decision_section
from headroom.console.pages.what_if_form import FormFields, section
from headroom.console.summary import summarize
from headroom.console.what_if import answer, neighbours
from headroom.console.what_if_changes import Changes, parsed
from headroom.controller.report.evaluation import Evaluation
from headroom.scaling import Policy, State, decide
from headroom.scaling.values.policy import Routing
from headroom.scaling.values.tokens import EngineLimits, Target, TokenTargets
from support.generating_plant import GeneratingPlant, varied_lengths
from support.generating_plants import LLAMA_8B

POLICY = Policy(
    latency_target_s=60.0,
    max_replicas=40,
    routing=Routing.LEAST_IN_FLIGHT,
    token_targets=TokenTargets(
        first_token=Target(percentile=0.95, seconds=2.0),
        output_token=Target(percentile=0.95, seconds=0.02),
    ),
)


@pytest.fixture(scope="module")
def generating(last: Evaluation) -> Evaluation:
    """Return the evaluation of a service whose cost is learned."""
    plant = GeneratingPlant(
        cost=LLAMA_8B,
        limits=EngineLimits(kv_tokens=350_000, sequences=256, iteration_tokens=8192),
        lengths=varied_lengths(1000, 300),
        rate_rps=lambda t: 20.0 + 8.0 * (t % 100 > 50),
        sums=True,
    )
    plant.scale(2, at_once=True)
    state = State.initial()
    while True:
        plant.run(2.0)
        observation = plant.observe()
        decision, after = decide(POLICY, state, observation)
        if plant.now_s >= 240.0:
            return replace(
                last, policy=POLICY, state=state, observation=observation, decision=decision
            )
        state = after


def test_a_lower_promise_on_tokens_never_needs_fewer_replicas(generating: Evaluation) -> None:
    found = [
        answer(generating, Changes(output_token_s=seconds)).settled or 0
        for seconds in (0.05, 0.02, 0.015, 0.012)
    ]
    assert found == sorted(found)
    assert found[-1] > found[0]


def test_a_promise_below_the_floor_is_infeasible(generating: Evaluation) -> None:
    assert not answer(generating, Changes(output_token_s=0.001)).feasible


def test_alternatives_are_those_of_the_promises(generating: Evaluation) -> None:
    policies = [one.policy.token_targets or TokenTargets() for one in neighbours(generating)]
    first = [one.first_token.seconds for one in policies if one.first_token]
    assert first[:6] == [2.0, 1.0, 1.5, 3.0, 4.0, 2.0]
    output = [one.output_token.seconds for one in policies if one.output_token]
    assert output[5:9] == [0.01, 0.015, 0.03, 0.04]


def test_the_form_asks_for_promises_and_names_the_difference(generating: Evaluation) -> None:
    text = str(section(generating, FormFields(output_token="15ms"), action="/s"))
    assert 'name="first_token"' in text
    assert "your values: output token 15ms" in text


def test_decision_shows_the_share_of_a_promise_and_no_time_of_none(
    generating: Evaluation,
) -> None:
    row = summarize({"metadata": {"name": "chat", "namespace": "llm"}, "spec": {}})
    text = str(decision_section(row, generating))
    assert "Of the tightest promise" in text
    expected_s = generating.decision.counterfactuals[1].latency_s
    assert formatting.percent(expected_s / POLICY.latency_target_s) in text
    assert formatting.seconds(expected_s) not in text


def test_a_promise_that_is_not_there_cannot_be_changed(last: Evaluation) -> None:
    assert parsed({"first_token": "2s"}) == Changes(first_token_s=2.0)
    with pytest.raises(ValueError, match="output_token must be between 1ms and 10m"):
        parsed({"output_token": "20m"})
    with pytest.raises(ValueError, match=r"the service has no slo\.timeToFirstToken to change"):
        answer(last, Changes(first_token_s=2.0))
    assert 'name="first_token"' not in str(section(last, FormFields(), action="/s"))
