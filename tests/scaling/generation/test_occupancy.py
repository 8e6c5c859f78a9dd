"""Sequences that decode at once: the closed form against the chain, and its quantiles."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.scaling.generation.replica_model.occupancy import occupancy_of
from headroom.scaling.generation.replica_model.work import Work, work_of
from headroom.scaling.values.tokens import IterationCost
from support.generating_plants import LLAMA_8B, LONG, QWEN_32B, requests


def chain(work: Work, arrival_rps: float) -> list[float]:
    """The probabilities of 0, 1, 2, ... sequences, by detailed balance of births and deaths."""
    free = 1.0 - arrival_rps * work.prompt_s
    shares, share = [1.0], 1.0
    for number in range(1, 3000):
        step_s = (work.fixed_s + work.slope_s * number) / free
        share *= arrival_rps * work.steps * step_s / number
        shares.append(share)
    whole = sum(shares)
    return [one / whole for one in shares]


@pytest.mark.parametrize("cost", [LLAMA_8B, QWEN_32B])
@pytest.mark.parametrize("load", [0.1, 0.3, 0.5, 0.65, 0.75])
def test_occupancy_against_the_chain_has_its_mean_and_quantiles(
    cost: IterationCost, load: float
) -> None:
    work = replace(work_of(cost, LONG), context_variance=0.0)
    rate = load / work.request_s
    occupancy = occupancy_of(work, rate)
    shares = chain(work, rate)
    mean = sum(number * share for number, share in enumerate(shares))
    assert occupancy is not None
    assert occupancy.mean == pytest.approx(mean + held_up(work, rate), rel=1e-6)
    for percentile in (0.5, 0.9, 0.95, 0.99):
        reached, exact = 0.0, 0
        while reached < percentile:
            reached += shares[exact]
            exact += 1
        assert occupancy.sequences(percentile) == pytest.approx(exact - 0.5, abs=0.02 * exact + 1)


def held_up(work: Work, rate: float) -> float:
    """The sequences that wait for prompts that are there first, which the chain does not know.

    Equal prompts of S seconds are an M/D/1 queue: E[V] = rho (S + rho S / (2 (1 - rho))).
    """
    prompt_s = work.prompt_s
    rho = rate * prompt_s
    work_there_s = rho * (prompt_s + rho * prompt_s / (2.0 * (1.0 - rho)))
    return rate * work_there_s / (1.0 - rho)


def test_occupancy_at_the_published_load_fills_the_memory_where_a_simulation_collapses() -> None:
    """A token-level simulation of 32B with 350 000 tokens: 1.03 and 1.62 of the memory."""
    work = work_of(QWEN_32B, LONG)
    found = [occupancy_of(work, load / work.request_s) for load in (0.65, 0.75)]
    shares = [one.memory_tokens(0.95) / 350_000 for one in found if one is not None]
    assert shares == pytest.approx([1.045, 1.652], rel=0.01)  # 1.03 and 1.62 without prompts


def test_occupancy_beyond_the_engines_time_is_none() -> None:
    work = work_of(LLAMA_8B, LONG)
    assert occupancy_of(work, 1.01 / work.request_s) is None
    assert occupancy_of(work, 10.0 / work.prompt_s) is None


@given(
    prompt=st.floats(1, 100_000),
    output=st.floats(1, 10_000),
    output_cv=st.floats(0, 3),
    load=st.floats(0.01, 0.95),
)
def test_occupancy_of_any_lengths_holds_more_at_a_higher_rate(
    prompt: float, output: float, output_cv: float, load: float
) -> None:
    work = work_of(LLAMA_8B, requests(prompt, output, output_cv=output_cv))
    less = occupancy_of(work, 0.9 * load / work.request_s)
    more = occupancy_of(work, load / work.request_s)
    assert less is not None
    assert more is not None
    assert less.mean < more.mean
    assert less.memory_tokens(0.95) < more.memory_tokens(0.95)
    assert more.sequences(0.95) > more.mean
    assert math.isfinite(more.memory_tokens(0.95))


def test_context_of_exponential_answers_is_a_whole_mean_longer_than_the_prompt() -> None:
    assert work_of(LLAMA_8B, requests(1000, 300)).context_tokens == pytest.approx(1150)
    exponential = requests(1000, 300, output_cv=1.0)
    assert work_of(LLAMA_8B, exponential).context_tokens == pytest.approx(1300)


def test_memory_of_level_replicas_shares_the_number_of_sequences_but_not_their_lengths() -> None:
    """Routing by requests in flight says nothing about how long their contexts are."""
    varied = requests(4000, 200, output_cv=1.0, prompt_cv=1.5)
    alike, spread = (work_of(LLAMA_8B, shape) for shape in (requests(4000, 200), varied))
    spread = replace(spread, prompt_s_cv=0.0)  # of contexts alone
    rate = 0.6 / spread.request_s
    found = [occupancy_of(work, rate) for work in (alike, spread)]
    above = []
    for one in found:
        assert one is not None
        mean = one.memory_tokens(0.5, 1e9)
        above.append([one.memory_tokens(0.95, pooled) / mean - 1.0 for pooled in (1.0, 16.0)])
    assert above[0][1] < 0.3 * above[0][0]
    assert above[1][1] > 0.7 * above[1][0]


@pytest.mark.parametrize(
    ("load", "prompt_cv", "mean", "deviation"), [(0.37, 1.5, 9.6, 3.8), (0.71, 1.5, 44.8, 13.5)]
)
def test_occupancy_with_uneven_contexts_is_that_of_a_simulation(
    load: float, prompt_cv: float, mean: float, deviation: float
) -> None:
    """Two replicas of Llama 8B for three hours, 4300 tokens in and 800 out."""
    shape = requests(4300, 800, prompt_cv=prompt_cv, output_cv=1.0)
    work = work_of(LLAMA_8B, shape)
    found = occupancy_of(work, load / work.request_s)
    assert found is not None
    assert found.mean == pytest.approx(mean, rel=0.12)
    assert math.sqrt(found.variance) == pytest.approx(deviation, rel=0.12)


@given(
    prompt=st.floats(10, 30_000),
    prompt_cv=st.floats(0, 3),
    output=st.floats(10, 3000),
    load=st.floats(0.01, 0.9),
)
def test_occupancy_of_uneven_prompts_holds_more_and_varies_more(
    prompt: float, prompt_cv: float, output: float, load: float
) -> None:
    work = work_of(LLAMA_8B, requests(prompt, output, prompt_cv=prompt_cv))
    rate = load / work.request_s
    alike = replace(work, context_variance=0.0, prompt_s_cv=0.0)
    one, other = occupancy_of(alike, rate), occupancy_of(work, rate)
    assert one is not None
    assert other is not None
    assert other.mean >= one.mean
    assert other.variance >= one.variance
    for pooled in (1.0, 8.0):
        assert other.memory_tokens(0.99, pooled) >= one.memory_tokens(0.99, pooled) * (1 - 1e-9)
