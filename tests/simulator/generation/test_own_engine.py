"""The plant against the scheduler of the model server, both on the same requests.

Where prompts cost little next to an iteration, the server's pace for prompts bounds nothing, and
both policies are one: every first and last token comes at the same time. Compared: one class, no
deadlines, no speculation, distinct prompts that fit into an iteration (the server lets short ones
pass one that is computed in parts), memory for all that is admitted.
"""

from __future__ import annotations

import numpy as np
import pytest

from headroom.scaling.values.tokens import IterationCost
from headroom.simulator.generation.plant import Engine
from headroom.simulator.generation.requests import Requests
from headroom_server.generation.scheduling.costs.iteration_cost import Features
from simulator.generation.plants import H100_8B, exponential, output_token_s, poisson, ran
from support.generation_world import Device, World, request


def _served(requests: Requests, device: Device) -> tuple[list[float], list[float]]:
    """Return the times of first and last tokens of the model server's scheduler."""
    world, random = World(device), np.random.default_rng(1)
    for _ in range(400):  # the cost of an iteration is known from warm-up
        features = Features(
            int(random.integers(0, 600)),
            int(random.integers(0, 40)),
            int(random.integers(0, 40_000)),
            float(random.integers(0, 200_000)),
        )
        world.scheduler.learn(features, device.seconds(features))
    world.arrive(
        request(
            key,
            int(requests.prompt_tokens[key]),
            int(requests.output_tokens[key]),
            arrived_s=float(requests.arrival_s[key]),
        )
        for key in range(len(requests))
    )
    world.run()
    times = [world.records[key].token_times_s for key in range(len(requests))]
    return [one[0] for one in times], [one[-1] for one in times]


def _engine(cost: IterationCost) -> Engine:
    return Engine(cost=cost, kv_tokens=4096 * 16, sequences=64, iteration_tokens=2048, noise_cv=0.0)


@pytest.mark.parametrize("rate_rps", [2.0, 12.0, 30.0])
@pytest.mark.parametrize(("prompt", "output"), [(200, 60), (800, 120)])
def test_plant_and_server_give_every_token_at_the_same_time_where_prompts_cost_little(
    rate_rps: float, prompt: float, output: float
) -> None:
    cost = IterationCost(
        fixed_s=5.71e-3, prompt_token_s=1e-7, sequence_s=1.436e-5, context_token_s=4.10e-8
    )
    device = Device(per_token_s=1e-7, per_product_s=0.0)
    drawn = poisson(rate_rps, exponential(prompt, 200), exponential(output, 200))
    requests = drawn.bounded(1_000)

    first_s, end_s = _served(requests, device)
    plant = ran(_engine(cost), requests)

    assert plant.first_s.tolist() == pytest.approx(first_s, rel=1e-9)
    assert plant.end_s.tolist() == pytest.approx(end_s, rel=1e-9)


def test_server_spreads_prompts_for_the_same_time_per_output_token() -> None:
    """With real costs the server paces prompts and vLLM does not; the mean pace is the same."""
    requests = poisson(12.0, exponential(200, 200), exponential(60, 200))

    first_s, end_s = _served(requests, Device())
    plant = ran(_engine(H100_8B), requests)

    served = (np.array(end_s) - np.array(first_s)) / np.maximum(requests.output_tokens - 1, 1)
    tails = [np.quantile(values, 0.95) for values in (served, output_token_s(plant))]
    assert tails[0] == pytest.approx(tails[1], rel=0.05)
    assert np.quantile(np.array(first_s) - plant.first_s, 0.95) > 0.0
