"""Clients that give up answers which had begun: their first token is judged, not their end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.scaling import Decision, Observation, Policy, State, decide
from headroom.scaling.values.observation import PodSample
from headroom.scaling.values.policy import Routing
from headroom.scaling.values.tokens import EngineLimits, Target, TokenTargets
from support.generating_plant import GeneratingPlant, varied_lengths
from support.generating_plants import QWEN_32B

FIRST = Target(percentile=0.95, seconds=3.0)
TARGETS = TokenTargets(first_token=FIRST, output_token=Target(percentile=0.95, seconds=0.075))
MISSED = 0.2


def missed(sample: PodSample, *, after_first_token: bool) -> PodSample:
    """Return the page of a server that counts a fifth of its requests as missed."""
    tokens = sample.generation
    assert tokens is not None
    assert tokens.first_token is not None
    lost = float(round(MISSED * tokens.first_token.counts[-1]))
    tokens = replace(tokens, given_up=lost if after_first_token else 0.0)
    arrivals = sample.arrivals if after_first_token else sample.arrivals + lost
    return replace(sample, missed=lost, arrivals=arrivals, generation=tokens)


def most_replicas(targets: TokenTargets, *, after_first_token: bool) -> tuple[int, Decision]:
    plant = GeneratingPlant(
        cost=QWEN_32B,
        limits=EngineLimits(kv_tokens=350_000, sequences=256, iteration_tokens=8192),
        lengths=varied_lengths(900, 150),
        rate_rps=lambda _: 8.0,
    )
    plant.scale(2, at_once=True)
    policy = Policy(
        latency_target_s=60.0,
        token_targets=targets,
        routing=Routing.LEAST_IN_FLIGHT,
        max_replicas=20,
    )
    state, most = State.initial(), 0
    while plant.now_s < 500.0:
        plant.run(2.0)
        seen: Observation = plant.observe()
        pages = [missed(one, after_first_token=after_first_token) for one in seen.samples]
        decision, state = decide(policy, state, replace(seen, samples=tuple(pages)))
        plant.scale(decision.replicas)
        most = max(most, decision.replicas)
    return most, decision


def test_answers_given_up_after_their_first_token_need_no_replicas() -> None:
    most, decision = most_replicas(TARGETS, after_first_token=True)
    attained = decision.signals.attainment.value
    assert attained is not None
    assert most == 2
    assert attained > 0.99


@pytest.mark.parametrize(
    ("targets", "after_first_token"),
    [
        (TARGETS, False),
        (replace(TARGETS, latency=Target(percentile=0.95, seconds=60.0)), True),
    ],
    ids=["without a first token", "whole answers are promised"],
)
def test_requests_that_miss_a_promise_need_replicas(
    targets: TokenTargets, after_first_token: bool
) -> None:
    most, decision = most_replicas(targets, after_first_token=after_first_token)
    attained = decision.signals.attainment.value
    assert attained is not None
    assert most > 2
    assert attained < 0.9
