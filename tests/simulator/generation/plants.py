"""Small plants of one replica and a few."""

from __future__ import annotations

import math

import numpy as np

from headroom.scaling.values.tokens import IterationCost, TokenTargets
from headroom.simulator.generation.compiled import kernel
from headroom.simulator.generation.compiled.state import TokenState, allocate
from headroom.simulator.generation.plant import Engine, TokenRouting, TokenService
from headroom.simulator.generation.requests import Floats, Ints, Requests

H100_8B = IterationCost(
    fixed_s=5.71e-3,
    prompt_token_s=1.676e-5,
    sequence_s=1.436e-5,
    context_token_s=4.10e-8,
    prompt_product_s=1.0e-9,
)


def poisson(rate_rps: float, prompt: Ints, output: Ints, seed: int = 1) -> Requests:
    gaps = np.random.default_rng(seed).exponential(1.0 / rate_rps, len(prompt))
    return Requests(arrival_s=np.cumsum(gaps), prompt_tokens=prompt, output_tokens=output)


def fixed(value: int, count: int) -> Ints:
    return np.full(count, value)


def exponential(mean: float, count: int, seed: int = 2) -> Ints:
    drawn = np.random.default_rng(seed).exponential(mean, count)
    return np.maximum(1, drawn.astype(np.int64))


def ran(
    engine: Engine,
    requests: Requests,
    *,
    rows: int = 1,
    routing: TokenRouting = TokenRouting.LEAST_IN_FLIGHT,
    until_s: float = math.inf,
) -> TokenState:
    service = TokenService(engine=engine, targets=TokenTargets(), routing=routing)
    plant = allocate(service, requests, rows, 1)
    for row in range(rows):
        kernel.admit(plant, row)
    kernel.advance(plant, until_s)
    return plant


def first_token_s(plant: TokenState) -> Floats:
    return plant.first_s - plant.arrival_s


def output_token_s(plant: TokenState) -> Floats:
    return (plant.end_s - plant.first_s) / np.maximum(plant.output - 1, 1)
