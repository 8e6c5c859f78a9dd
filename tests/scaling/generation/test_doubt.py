"""Distance of the learned cost from the true one where a replica is full."""

from __future__ import annotations

import numpy as np
import pytest

from headroom.scaling.generation.learning.iteration_cost.doubt import (
    MOST,
    columns_at_load,
    error_at_load,
)
from headroom.scaling.generation.learning.iteration_cost.ledger import Ledger
from headroom.scaling.generation.learning.iteration_cost.mean_iterations import Intervals
from headroom.scaling.generation.learning.iteration_cost.ratios import Ratios
from headroom.scaling.generation.replica_model.work import work_of
from headroom.scaling.values.tokens import IterationCost
from support.generating_plants import LLAMA_8B, LLAMA_70B, QWEN_8B_L40S, QWEN_32B, requests

SHAPE = requests(1500.0, 250.0, prompt_cv=0.6, output_cv=0.6)


def learned(cost: IterationCost, most: float, seed: int, count: int = 300) -> tuple[float, float]:
    """Learned over true time of a request, and its error, after up to `most` sequences at once."""
    random = np.random.default_rng(seed)
    sequences = random.uniform(1.0, most, count)
    prompts, contexts = random.uniform(0.0, 150.0, count), 1600.0 * sequences
    products = prompts * 900.0
    alone_s = [cost.iteration_s(0.0, *pair) for pair in zip(sequences, contexts, strict=True)]
    seconds = np.array(alone_s) + cost.prompt_token_s * prompts + cost.prompt_product_s * products
    intervals = Intervals(
        iterations=np.full(count, 100.0),
        seconds=seconds * (1.0 + 0.03 * random.standard_normal(count)),
        prompt_tokens=prompts,
        sequences=sequences,
        context_tokens=contexts,
        products=products,
        prompt_share=-np.expm1(-prompts / 1500.0),
    )
    found = Ledger().observe(intervals, Ratios(), 10.0).fit(Ratios())
    assert found is not None
    guess = work_of(found.cost(Ratios()), SHAPE).request_s / work_of(cost, SHAPE).request_s
    return guess, error_at_load(found, columns_at_load(SHAPE))


@pytest.mark.parametrize("cost", [LLAMA_8B, QWEN_32B, LLAMA_70B, QWEN_8B_L40S])
def test_more_load_leaves_less_error(cost: IterationCost) -> None:
    errors = [learned(cost, most, 1)[1] for most in (1.5, 8.0, 64.0)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 0.1 > errors[-1]


@pytest.mark.parametrize("most", [1.5, 4.0, 16.0, 64.0])
@pytest.mark.parametrize("cost", [LLAMA_8B, QWEN_32B, LLAMA_70B, QWEN_8B_L40S])
def test_true_time_is_within_two_errors(cost: IterationCost, most: float) -> None:
    for seed in range(5):
        guess, error = learned(cost, most, seed)
        assert abs(guess - 1.0) <= 2.0 * error + 0.02, (guess, error)


def test_without_prompts_nothing_is_known_of_them() -> None:
    one = Intervals(
        iterations=np.full(9, 100.0),
        seconds=np.full(9, 0.01),
        prompt_tokens=np.zeros(9),
        sequences=np.ones(9),
        context_tokens=np.full(9, 1000.0),
        products=np.zeros(9),
        prompt_share=np.zeros(9),
    )
    found = Ledger().observe(one, Ratios(), 10.0).fit(Ratios())
    assert found is not None
    assert error_at_load(found, columns_at_load(SHAPE)) <= MOST
