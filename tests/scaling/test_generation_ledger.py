"""The ledger learns the cost of engines that are unlike the measured ones, within a minute."""

from __future__ import annotations

import numpy as np
import pytest

from headroom.scaling.generation.estimate import Ratios
from headroom.scaling.generation.ledger import Ledger

PROMPT, STEPS, CONTEXT = 800.0, 100.0, 850.0
EVERY = 50
"""Iterations between two pages."""


def learned(cost: tuple[float, float, float], iterations: int, noise: float, seed: int) -> Ledger:
    """Return what pages with exact sums teach of t = a + b P + d D, with 2 to 25 sequences."""
    random = np.random.default_rng(seed)
    sequences = np.clip(np.cumsum(random.normal(0.0, 1.0, iterations)) % 46.0 - 23.0, -23.0, 23.0)
    sequences = np.round(2.0 + np.abs(sequences))
    prompts = np.where(random.random(iterations) < 0.08, PROMPT, 0.0)
    features = np.column_stack(
        (
            np.ones(iterations),
            prompts,
            sequences,
            CONTEXT * sequences,
            prompts * PROMPT / 2.0,
        )
    )
    seconds = features[:, :3] @ np.array(cost) * (1.0 + noise * random.normal(size=iterations))
    ledger = Ledger()
    for start in range(0, iterations, EVERY):
        part, taken = features[start : start + EVERY], seconds[start : start + EVERY]
        ledger = ledger.observe_sums(part.T @ part, part.T @ taken, Ratios(), 2.0, PROMPT)
    return ledger


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize(
    "cost",
    [
        (0.030, 2e-5, 3e-3),  # a sequence takes a tenth of the fixed time: forty times as much
        (0.030, 2e-5, 3e-4),
        (0.0057, 1.7e-5, 5e-5),  # as measured engines
        (0.0210, 6e-5, 2e-4),
    ],
)
def test_a_minute_of_load_teaches_the_work_of_a_request(
    cost: tuple[float, float, float], noise: float
) -> None:
    fixed_s, prompt_s, sequence_s = cost
    for seed in range(3):
        estimate = learned(cost, 1500, noise, seed).fit(Ratios())
        assert estimate is not None
        found = estimate.cost(Ratios())
        work_s = PROMPT * (found.prompt_token_s + found.prompt_product_s * PROMPT / 2.0)
        work_s += STEPS * (found.sequence_s + found.context_token_s * CONTEXT)
        assert found.fixed_s == pytest.approx(fixed_s, rel=0.03 + 0.4 * noise)
        # an error of 3 % of the fixed time at a mean of 13 sequences is all that noise can hide
        hidden_s = 0.03 * noise / 0.1 * fixed_s * STEPS / 13.0
        expected_s = PROMPT * prompt_s + STEPS * sequence_s
        assert work_s == pytest.approx(expected_s, rel=0.06, abs=hidden_s)
