"""The plant against queueing theory where it is exact, and against the published check of tails."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headroom.scaling.values.tokens import IterationCost
from headroom.simulator.generation.compiled.layout import Column
from headroom.simulator.generation.plant import Engine
from simulator.generation.plants import (
    H100_8B,
    exponential,
    first_token_s,
    fixed,
    output_token_s,
    poisson,
    ran,
)

QWEN_32B = IterationCost(
    fixed_s=13.16e-3,
    prompt_token_s=4.415e-5,
    sequence_s=3.026e-5,
    context_token_s=4.15e-8,
    prompt_product_s=1.76e-9,
)


@pytest.mark.parametrize("utilization", [0.3, 0.6, 0.8])
def test_prompts_that_fill_an_iteration_wait_as_in_an_m_d_1_queue(utilization: float) -> None:
    """Pollaczek and Khinchine: the mean wait is rho s / (2 (1 - rho))."""
    cost = IterationCost(fixed_s=0.02, prompt_token_s=1e-5, sequence_s=0.0)
    engine = Engine(
        cost=cost, kv_tokens=4_000_000, sequences=512, iteration_tokens=512, noise_cv=0.0
    )
    service_s, count = 0.02 + 512e-5, 300_000
    requests = poisson(utilization / service_s, fixed(512, count), fixed(1, count))

    mean_s = float(np.mean(first_token_s(ran(engine, requests))))

    expected_s = service_s + utilization * service_s / (2 * (1 - utilization))
    assert mean_s == pytest.approx(expected_s, rel=0.03)


@pytest.mark.parametrize("load", [0.4, 0.6, 0.8])
def test_occupancy_is_that_of_the_birth_death_process(load: float) -> None:
    """P(n) ~ prod lambda O tau(i) / i, tau(n) = a + d n: only the mean length matters."""
    cost = IterationCost(fixed_s=5e-3, prompt_token_s=0.0, sequence_s=1e-4)
    engine = Engine(cost=cost, kv_tokens=9_000_000, sequences=2000, noise_cv=0.0)
    output, count = exponential(400, 40_000), 40_000
    mean = float(output.mean()) - 1.0  # the prompt's iteration gives the first
    rate_rps = load / (mean * 1e-4)
    plant = ran(engine, poisson(rate_rps, fixed(1, count), output))

    shown = plant.counters[0, Column.SEQUENCE_S] / float(np.nanmax(plant.end_s))
    weights, weight = [], 1.0
    for n in range(2000):
        weights.append(weight)
        weight *= rate_rps * mean * (5e-3 + 1e-4 * (n + 1)) / (n + 1)
    expected = sum(n * p for n, p in enumerate(weights)) / sum(weights)
    assert shown == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    ("cost", "kv_tokens", "prompt", "output", "utilization", "p95_ms"),
    [
        (H100_8B, 450_000, 4000, 1000, 0.30, 128),
        (H100_8B, 450_000, 4000, 1000, 0.50, 162),
        (H100_8B, 450_000, 4000, 1000, 0.65, 177),
        (H100_8B, 450_000, 1000, -300, 0.30, 51),
        (H100_8B, 450_000, 1000, -300, 0.50, 65),
        (H100_8B, 450_000, 1000, -300, 0.65, 84),
        (QWEN_32B, 350_000, 4000, 1000, 0.30, 381),
        (QWEN_32B, 350_000, 1000, -300, 0.30, 138),
        (QWEN_32B, 350_000, 1000, -300, 0.50, 182),
        (QWEN_32B, 350_000, 1000, -300, 0.75, 309),
    ],
)
def test_first_token_tail_is_that_of_another_simulation(
    cost: IterationCost,
    kv_tokens: int,
    prompt: int,
    output: int,
    utilization: float,
    p95_ms: float,
) -> None:
    """The p95 of a token-level simulation by others; a negative output is an exponential mean."""
    mean, context = abs(output), prompt + (output / 2 if output > 0 else -output)
    request_s = (
        cost.prompt_token_s * prompt
        + cost.sequence_s * mean
        + cost.context_token_s * mean * context
        + cost.prompt_product_s * prompt * prompt / 2
    )
    count = 20_000
    outputs = fixed(output, count) if output > 0 else exponential(mean, count)
    requests = poisson(utilization / request_s, fixed(prompt, count), outputs)

    plant = ran(Engine(cost=cost, kv_tokens=kv_tokens, noise_cv=0.0), requests)

    assert 1000 * np.quantile(first_token_s(plant), 0.95) == pytest.approx(p95_ms, rel=0.08)


def test_full_memory_breaks_the_first_token_and_not_the_next() -> None:
    """4000/1000 on 32B at 0.65: another simulation found 44 s; an iteration stays below 60 ms."""
    context = 4500
    request_s = 4.415e-5 * 4000 + 3.026e-5 * 1000 + 4.15e-8 * 1000 * context + 1.76e-9 * 8e6
    requests = poisson(0.65 / request_s, fixed(4000, 4000), fixed(1000, 4000))

    plant = ran(Engine(cost=QWEN_32B, kv_tokens=350_000), requests)

    assert np.quantile(first_token_s(plant), 0.95) > 10.0
    assert np.quantile(output_token_s(plant), 0.95) < 0.06
    assert plant.preempted.sum() > 100
    assert not math.isnan(float(plant.end_s.sum()))
