"""A mixture of experts is recognized by its iterations, and a dense model is not taken for one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from generating_plants import LLAMA_8B, QWEN_32B
from headroom.scaling.generation.ledger import Intervals, Ledger, Ratios
from headroom.scaling.token_values import IterationCost

QWEN_30B_A3B = IterationCost(
    fixed_s=3.07e-3,
    prompt_token_s=1.146e-5,
    sequence_s=1.382e-5,
    context_token_s=3.07e-8,
    prompt_product_s=3.3e-10,
    experts_s=2.085e-2,
    expert_share=8 / 128,
)
"""Qwen3 30B-A3B on an H100: 8 of 128 experts per token."""
CONTEXT, PROMPT = 4500.0, 4000.0


def seconds(cost: IterationCost, sequences: float, prompts: float) -> float:
    """The mean of iterations of which so many compute a prompt."""
    alone = cost.iteration_s(0.0, sequences, sequences * CONTEXT)
    together = cost.iteration_s(PROMPT, sequences, sequences * CONTEXT, PROMPT**2 / 2.0)
    return alone + prompts * (together - alone)


def learned(cost: IterationCost, numbers: np.ndarray, noise: float = 0.01) -> Ledger:
    """The ledger after two-second intervals with these sequences."""
    random, ledger = np.random.default_rng(1), Ledger()
    for sequences in numbers:
        prompts = float(random.uniform(0.0, 0.05))
        one_s = seconds(cost, float(sequences), prompts) * (1.0 + noise * random.standard_normal())
        one = Intervals(
            iterations=np.array([2.0 / one_s]),
            seconds=np.array([one_s]),
            prompt_tokens=np.array([prompts * PROMPT]),
            sequences=np.array([float(sequences)]),
            context_tokens=np.array([sequences * CONTEXT]),
            products=np.array([prompts * PROMPT**2 / 2.0]),
            prompt_share=np.array([prompts]),
        )
        ledger = ledger.observe(one, Ratios(), 2.0)
    return ledger.recognize()


QUIET = np.linspace(0.5, 12.0, 300)


def test_ledger_of_experts_seen_while_sequences_are_few_knows_them_where_they_are_many() -> None:
    ledger = learned(QWEN_30B_A3B, QUIET)
    assert ledger.experts.share == pytest.approx(8 / 128)
    cost = ledger.fit(Ratios())
    assert cost is not None
    line = replace(ledger, experts=type(ledger.experts)()).fit(Ratios())
    assert line is not None
    for sequences in (8.0, 25.0, 50.0):
        true_s = seconds(QWEN_30B_A3B, sequences, 0.02)
        assert seconds(cost, sequences, 0.02) == pytest.approx(true_s, rel=0.06)
    errors = [
        abs(seconds(one, 50.0, 0.02) / seconds(QWEN_30B_A3B, 50.0, 0.02) - 1.0)
        for one in (cost, line)
    ]
    assert errors[0] < 0.5 * errors[1]


@pytest.mark.parametrize("cost", [LLAMA_8B, QWEN_32B])
def test_ledger_of_a_dense_model_finds_no_experts(cost: IterationCost) -> None:
    ledger = learned(cost, np.linspace(0.5, 60.0, 300))
    assert ledger.experts.per_fixed == 0.0


def test_ledger_of_one_load_finds_no_experts() -> None:
    assert learned(QWEN_30B_A3B, np.full(50, 8.0)).experts.per_fixed == 0.0
