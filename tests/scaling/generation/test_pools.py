"""Pools that compute prompts or generate answers alone: each is a service with one promise."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from headroom.scaling import Policy, State, decide
from headroom.scaling.generation.fleet.learned_fleet import fleet_of
from headroom.scaling.values.observation import PodSample
from headroom.scaling.values.policy import Routing
from headroom.scaling.values.tokens import EngineLimits, IterationCost, Target, TokenTargets
from support.generating_plant import GeneratingPlant, Lengths, varied_lengths
from support.generating_plants import QWEN_32B

LIMITS = EngineLimits(kv_tokens=350_000, sequences=256, iteration_tokens=8192)
PREFILL = TokenTargets(first_token=Target(percentile=0.95, seconds=2.0))
DECODE = TokenTargets(output_token=Target(percentile=0.95, seconds=0.05))
MOVED = replace(QWEN_32B, prompt_token_s=0.0, prompt_product_s=0.0)
"""Keys and values come from the other pool: a prompt costs nothing."""


def prompts_alone(source: random.Random) -> tuple[int, int]:
    """A request of a prefill pool: its one token is thrown away."""
    prompt, _ = varied_lengths(4000, 1)(source)
    return prompt, 1


def of_vllm(sample: PodSample, *, moved: bool) -> PodSample:
    """A page without seconds of the engine; prompts that were `moved` are found in a cache."""
    page = sample.generation
    assert page is not None
    computed = page.computed_prompt_tokens
    page = replace(page, engine_seconds=None)
    if moved:
        page = replace(page, computed_prompt_tokens=0.0, cached_prompt_tokens=computed)
    return replace(sample, generation=page)


@pytest.mark.parametrize(
    ("targets", "cost", "lengths", "rate_rps", "replicas"),
    [
        (PREFILL, QWEN_32B, prompts_alone, 7.0, 3),
        (DECODE, MOVED, varied_lengths(4000, 200), 12.0, 2),
    ],
    ids=["prefill", "decode"],
)
def test_each_pool_is_sized_by_what_it_computes(
    targets: TokenTargets,
    cost: IterationCost,
    lengths: Lengths,
    rate_rps: float,
    replicas: int,
) -> None:
    policy = Policy(
        latency_target_s=60.0,
        token_targets=targets,
        routing=Routing.LEAST_IN_FLIGHT,
        max_replicas=40,
    )
    plant = GeneratingPlant(cost=cost, limits=LIMITS, lengths=lengths, rate_rps=lambda _: rate_rps)
    plant.scale(replicas, at_once=True)
    state = State.initial()
    while plant.now_s < 300.0:
        plant.run(2.0)
        seen = plant.observe()
        pages = tuple(of_vllm(one, moved=targets is DECODE) for one in seen.samples)
        decision, state = decide(policy, state, replace(seen, samples=pages))
    inputs = state.generation.inputs
    assert inputs is not None
    assert decision.generation is not None
    fleet = fleet_of(replace(inputs, cost=cost), targets, policy.routing, 60.0)
    true_rps = fleet.capacity_rps(60.0, replicas)
    assert decision.generation.capacity_rps == pytest.approx(true_rps, rel=0.25)
