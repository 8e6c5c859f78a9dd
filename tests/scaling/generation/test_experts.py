"""A mixture of experts is recognized by its iterations, and a dense model is not taken for one."""

from __future__ import annotations

import numpy as np
import pytest

from headroom.scaling.generation.learning.iteration_cost.doubt import columns_at_load
from headroom.scaling.generation.learning.iteration_cost.estimate import EVIDENCE, Estimate
from headroom.scaling.generation.learning.iteration_cost.ledger import Ledger
from headroom.scaling.generation.learning.iteration_cost.mean_iterations import Intervals
from headroom.scaling.generation.learning.iteration_cost.ratios import Ratios
from headroom.scaling.values.tokens import IterationCost
from support.generating_plants import LLAMA_8B, LONG, QWEN_8B_L40S, QWEN_30B_A3B, QWEN_32B

PROMPT = 4000.0


def seconds(cost: IterationCost, sequences: float, prompts: float, context: float) -> float:
    """The mean of iterations of which this many compute a prompt."""
    alone = cost.iteration_s(0.0, sequences, sequences * context)
    together = cost.iteration_s(PROMPT, sequences, sequences * context, PROMPT**2 / 2.0)
    return alone + prompts * (together - alone)


def taught(
    cost: IterationCost, numbers: np.ndarray, noise: float = 0.01, context_cv: float = 0.2
) -> Ledger:
    """Return the ledger after two-second intervals with these sequences."""
    random, ledger = np.random.default_rng(1), Ledger()
    for sequences in numbers.tolist():
        prompts = float(random.uniform(0.0, 0.05))
        context = 4500.0 * float(random.lognormal(0.0, context_cv))
        one_s = seconds(cost, sequences, prompts, context)
        one_s *= 1.0 + noise * random.standard_normal()
        one = Intervals(
            iterations=np.array([2.0 / one_s]),
            seconds=np.array([one_s]),
            prompt_tokens=np.array([prompts * PROMPT]),
            sequences=np.array([sequences]),
            context_tokens=np.array([sequences * context]),
            products=np.array([prompts * PROMPT**2 / 2.0]),
            prompt_share=np.array([prompts]),
        )
        ledger = ledger.observe(one, Ratios(), 2.0)
    return ledger


def learned(
    cost: IterationCost, numbers: np.ndarray, noise: float = 0.01, context_cv: float = 0.2
) -> Estimate:
    """Estimate from these intervals."""
    found = taught(cost, numbers, noise, context_cv).fit(Ratios())
    assert found is not None
    return found


def errors(cost: IterationCost, found: Estimate, numbers: tuple[float, ...]) -> list[float]:
    """Return the errors of the times of iterations with these numbers of sequences, as shares."""
    guess = found.cost(Ratios())
    pairs = [(seconds(one, n, 0.02, 4500.0) for one in (guess, cost)) for n in numbers]
    return [abs(learned_s / true_s - 1.0) for learned_s, true_s in pairs]


QUIET = np.linspace(0.5, 12.0, 300)
STEADY = np.random.default_rng(2).uniform(18.0, 31.0, 2000)


def test_experts_seen_while_sequences_are_few_are_known_where_they_are_many() -> None:
    found = learned(QWEN_30B_A3B, QUIET)
    assert found.share == pytest.approx(8 / 128)
    assert max(errors(QWEN_30B_A3B, found, (8.0, 25.0, 50.0))) < 0.03


def test_experts_are_recognized_at_a_steady_load() -> None:
    """A line is as right at that load, and 13 % wrong at twice the sequences."""
    found = learned(QWEN_30B_A3B, STEADY)
    assert found.share == pytest.approx(8 / 128)
    assert max(errors(QWEN_30B_A3B, found, (12.0, 25.0, 50.0, 80.0))) < 0.04


@pytest.mark.parametrize("context_cv", [0.0, 0.2])
@pytest.mark.parametrize("numbers", [np.linspace(0.5, 60.0, 300), STEADY])
@pytest.mark.parametrize("cost", [LLAMA_8B, QWEN_32B, QWEN_8B_L40S])
def test_dense_model_has_no_experts(
    cost: IterationCost, numbers: np.ndarray, context_cv: float
) -> None:
    found = learned(cost, numbers, noise=0.03, context_cv=context_cv)
    assert found.share == 0.0
    assert max(errors(cost, found, (10.0, 25.0, 50.0))) < 0.05


def test_few_intervals_show_no_experts() -> None:
    assert learned(QWEN_30B_A3B, QUIET[::6]).share == 0.0


def test_one_number_of_sequences_is_fitted_whatever_bends() -> None:
    """At 8 sequences nothing distinguishes fixed parts from experts; there the time is right."""
    found = learned(QWEN_30B_A3B, np.full(200, 8.0))
    assert max(errors(QWEN_30B_A3B, found, (8.0,))) < 0.02


@pytest.mark.parametrize("minutes", [12, 40])
def test_what_no_column_describes_is_no_mixture(minutes: int) -> None:
    """Answers of two tokens: iterations with more sequences have prompts that were not counted.

    The error adds up with time, until experts of 68 ms, 2500 tokens of prompts, explained it.
    """
    cost, count = QWEN_8B_L40S, 60 * minutes
    random = np.random.default_rng(1)
    sequences, unseen = random.uniform(0.2, 0.6, count), 1.0 + 0.2 * random.standard_normal(count)
    seen, own = random.uniform(150.0, 350.0, count), random.uniform(1500.0, 2100.0, count)
    decoding_s = (cost.fixed_s + cost.prompt_token_s * seen + 0.06 * (sequences - 0.4)) * unseen
    prompts_s = cost.fixed_s + cost.prompt_token_s * own
    prompts_s *= 1.0 + 0.1 * random.standard_normal(count)
    intervals = Intervals(
        iterations=np.full(2 * count, 40.0),
        seconds=np.concatenate((decoding_s, prompts_s)),
        prompt_tokens=np.concatenate((seen, own)),
        sequences=np.tile(sequences, 2),
        context_tokens=1500.0 * np.tile(sequences, 2),
        products=np.zeros(2 * count),
        prompt_share=np.concatenate((-np.expm1(-seen / 1500.0), np.ones(count))),
    )
    found = Ledger().observe(intervals, Ratios(), 10.0).fit(Ratios())
    assert found is not None
    assert found.share == 0.0
    assert found.cost(Ratios()).prompt_token_s == pytest.approx(cost.prompt_token_s, rel=0.05)


def test_while_little_load_was_seen_the_slowest_of_the_likely_mixtures_counts() -> None:
    """Few sequences touch few experts, whatever their share; a full replica reads them all."""
    ledger, at_load = taught(QWEN_30B_A3B, QUIET[:150], noise=0.1), columns_at_load(LONG)
    likeliest, careful = ledger.fit(Ratios()), ledger.fit(Ratios(), at_load=at_load)
    assert likeliest is not None
    assert careful is not None
    assert likeliest.share > 0.0
    assert careful.share > 0.0
    assert at_load @ careful.parts >= at_load @ likeliest.parts
    assert careful.deviations <= likeliest.deviations + EVIDENCE
