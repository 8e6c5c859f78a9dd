"""The cost of an iteration, learned from times between tokens where few sequences run at a time.

Sequences see no iteration that computes their own prompt. vLLM without Headroom's plugin reports
neither the engine's seconds nor the prompts of an iteration that a sequence sees.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.scaling import Observation, Policy, State, decide
from headroom.scaling.generation.fleet.learned_fleet import fleet_of
from headroom.scaling.values.observation import PodSample
from headroom.scaling.values.policy import Routing
from headroom.scaling.values.tokens import EngineLimits, IterationCost, Target, TokenTargets
from support.generating_plant import GeneratingPlant, varied_lengths
from support.generating_plants import LLAMA_8B, QWEN_8B_L40S, QWEN_32B

TARGETS = TokenTargets(
    first_token=Target(percentile=0.95, seconds=3.0),
    output_token=Target(percentile=0.95, seconds=0.1),
)
POLICY = Policy(
    latency_target_s=60.0,
    token_targets=TARGETS,
    routing=Routing.LEAST_IN_FLIGHT,
    max_replicas=40,
)
LIMITS = EngineLimits(kv_tokens=350_000, sequences=256, iteration_tokens=8192)


def untimed(sample: PodSample, *, prompts: bool) -> PodSample:
    """Return the page without the engine's seconds; and those of prompts, unless `prompts`."""
    tokens = sample.generation
    assert tokens is not None
    tokens = replace(tokens, engine_seconds=None)
    if not prompts:
        tokens = replace(tokens, prompt_seconds=None, timed_prompts=None)
    return replace(sample, generation=tokens)


def learned_and_true(
    cost: IterationCost,
    lengths: tuple[float, float],
    rate_rps: float,
    replicas: int,
    *,
    prompts: bool = True,
) -> tuple[float, float]:
    """Return what a replica carries by the learned cost, and by the plant's, after five minutes."""
    plant = GeneratingPlant(
        cost=cost, limits=LIMITS, lengths=varied_lengths(*lengths), rate_rps=lambda _: rate_rps
    )
    plant.scale(replicas, at_once=True)
    state = State.initial()
    while plant.now_s < 300.0:
        plant.run(2.0)
        seen: Observation = plant.observe()
        pages = tuple(untimed(one, prompts=prompts) for one in seen.samples)
        decision, state = decide(POLICY, state, replace(seen, samples=pages))
    inputs = state.generation.inputs
    assert inputs is not None
    assert decision.generation is not None
    assert decision.generation.capacity_rps is not None
    fleet = fleet_of(replace(inputs, cost=cost), TARGETS, POLICY.routing, 60.0)
    return decision.generation.capacity_rps, fleet.capacity_rps(60.0, replicas)


@pytest.mark.parametrize(
    ("cost", "lengths", "rate_rps", "replicas", "most_times"),
    [
        (QWEN_8B_L40S, (1500, 1.5), 15.0, 3, 1.5),
        (QWEN_8B_L40S, (1500, 20), 4.0, 3, 1.15),
        (QWEN_32B, (8000, 60), 0.6, 2, 1.15),
        (LLAMA_8B, (1000, 300), 24.0, 2, 1.15),
        (LLAMA_8B, (6000, 120), 14.0, 3, 1.09),
    ],
    ids=["labels", "short answers", "long prompts", "chat", "prompts that share iterations"],
)
def test_capacity_by_times_between_tokens_and_of_prompts(
    cost: IterationCost,
    lengths: tuple[float, float],
    rate_rps: float,
    replicas: int,
    most_times: float,
) -> None:
    learned, true = learned_and_true(cost, lengths, rate_rps, replicas)
    assert true / 1.15 < learned < most_times * true


def test_capacity_by_times_between_tokens_alone_is_no_multiple() -> None:
    learned, true = learned_and_true(QWEN_8B_L40S, (1500, 20), 4.0, 3, prompts=False)
    assert true / 1.4 < learned < 2.0 * true
