"""The tail of the time per output token: what prompts do to the sequences that decode."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.scaling.generation.replica_model.occupancy import occupancy_of
from headroom.scaling.generation.replica_model.output_token import mean_and_cv, output_token_s
from headroom.scaling.generation.replica_model.prompt_bursts import bursts_of
from headroom.scaling.generation.replica_model.work import work_of
from headroom.scaling.values.tokens import IterationCost, RequestShape
from support.generating_plants import LLAMA_8B, QWEN_8B_L40S, QWEN_32B, requests


def tail_s(
    cost: IterationCost, shape: RequestShape, rate: float, output_cv: float, level: float = 1.0
) -> float:
    occupancy = occupancy_of(work_of(cost, shape), rate)
    assert occupancy is not None
    return output_token_s(occupancy, 0.95, output_cv, level)


@pytest.mark.parametrize(
    ("cost", "prompt", "prompt_cv", "output", "output_cv", "level", "rate", "simulated_s"),
    [
        (LLAMA_8B, 4300, 0.6, 250, 1.0, 1, 1.795, 0.0113),
        (LLAMA_8B, 4300, 0.6, 250, 1.0, 2, 4.278, 0.0212),
        (LLAMA_8B, 4300, 1.5, 250, 1.0, 1, 2.223, 0.0186),
        (LLAMA_8B, 4300, 1.5, 250, 1.0, 2, 3.417, 0.0265),
        (QWEN_32B, 1500, 1.5, 100, 0.6, 1, 4.933, 0.0425),
        (QWEN_32B, 1500, 1.5, 100, 0.6, 2, 2.158, 0.0212),
        (QWEN_32B, 1500, 0.6, 250, 0.6, 1, 2.445, 0.0209),
        (QWEN_32B, 1500, 0.6, 250, 0.6, 2, 8.286, 0.0801),
    ],
)
def test_output_token_tail_is_within_a_fifth_of_a_simulation(
    cost: IterationCost,
    prompt: float,
    prompt_cv: float,
    output: float,
    output_cv: float,
    level: int,
    rate: float,
    simulated_s: float,
) -> None:
    """The plant with this many fixed replicas, two hours, requests in flight kept level."""
    shape = requests(prompt, output, prompt_cv=prompt_cv, output_cv=output_cv)
    assert tail_s(cost, shape, rate, output_cv, level) == pytest.approx(simulated_s, rel=0.2)


@pytest.mark.parametrize(
    ("cost", "prompt", "output", "output_cv", "level", "rate", "iteration_tokens", "simulated_s"),
    [
        (LLAMA_8B, 800, 2, 0.5, 1, 51.3, None, 0.1199),
        (LLAMA_8B, 800, 5, 0.4, 1, 38.1, None, 0.0552),
        (QWEN_8B_L40S, 800, 3, 0.5, 1, 10.8, None, 0.2245),
        (QWEN_32B, 2000, 10, 0.8, 1, 5.67, None, 0.2301),
        (LLAMA_8B, 800, 20, 0.8, 3, 36.3, None, 0.0222),
        (LLAMA_8B, 2000, 30, 0.8, 3, 18.1, 2048, 0.0445),
        (QWEN_32B, 2000, 30, 0.8, 1, 5.54, 1024, 0.0629),
        (QWEN_32B, 2000, 5, 0.8, 3, 7.60, 512, 0.0385),
    ],
)
def test_output_token_tail_of_short_answers_is_within_a_sixth_of_a_simulation(
    cost: IterationCost,
    prompt: float,
    output: float,
    output_cv: float,
    level: int,
    rate: float,
    iteration_tokens: int | None,
    simulated_s: float,
) -> None:
    """Prompts that come during their last iteration are computed after them.

    No iteration is longer than its tokens make it: the last three would take 79, 111 and 827 ms.
    """
    shape = requests(prompt, output, prompt_cv=0.8, output_cv=output_cv)
    occupancy = occupancy_of(work_of(cost, shape), rate)
    assert occupancy is not None
    found = output_token_s(occupancy, 0.95, output_cv, level, iteration_tokens)
    assert found == pytest.approx(simulated_s, rel=0.17)


def test_prompts_during_a_prompts_own_time_are_fewer_where_replicas_take_them_in_turn() -> None:
    """Equal prompts of 0.1 s at 3/s: 0.36 arrive by chance, where two take them in turn 0.15."""
    work = work_of(
        IterationCost(fixed_s=0.01, prompt_token_s=1e-4, sequence_s=1e-5), requests(1000, 100)
    )
    numbers = [bursts_of(work, 3.0, level).backlog_s / 0.1 for level in (1.0, 2.0, 8.0)]
    assert numbers == pytest.approx([0.364, 0.148, 0.087], abs=0.002)


def test_output_token_tail_of_an_idle_replica_is_its_iteration() -> None:
    shape = requests(1500, 250, prompt_cv=1.0)
    work = work_of(LLAMA_8B, shape)
    assert tail_s(LLAMA_8B, shape, 1e-6, 0.5) == pytest.approx(
        work.fixed_s + work.slope_s, rel=0.01
    )


@given(
    prompt=st.floats(10, 30_000),
    prompt_cv=st.floats(0, 2),
    output=st.floats(10, 3000),
    output_cv=st.floats(0, 2),
    load=st.floats(0.01, 0.9),
)
def test_output_token_tail_of_any_lengths_rises_with_the_rate_and_falls_with_level_replicas(
    prompt: float, prompt_cv: float, output: float, output_cv: float, load: float
) -> None:
    shape = requests(prompt, output, prompt_cv=prompt_cv, output_cv=output_cv)
    rate = load / work_of(LLAMA_8B, shape).request_s
    slack = 1.0 + 1e-9
    usual = tail_s(LLAMA_8B, shape, rate, output_cv)
    assert tail_s(LLAMA_8B, shape, 0.9 * rate, output_cv) <= usual * slack
    assert tail_s(LLAMA_8B, shape, rate, output_cv, 8.0) <= usual * slack


def test_output_token_tail_of_short_answers_is_higher_than_of_long_ones() -> None:
    """The same prompts at the same rate hold up 50 tokens for as long as 500."""
    found = [
        tail_s(QWEN_32B, requests(4000, output, prompt_cv=1.0), 0.8, 0.5) for output in (50, 500)
    ]
    assert found[0] > 1.3 * found[1]


def test_prompts_that_are_there_are_those_of_a_queue_with_one_server() -> None:
    """Half of the time, equal prompts of 0.1 s: 0.05 s wait on average, so 0.5 (0.1 + 0.05)."""
    cost = IterationCost(fixed_s=0.01, prompt_token_s=1e-4, sequence_s=1e-5)
    found = bursts_of(work_of(cost, requests(1000, 100)), 5.0)
    assert found.share == pytest.approx(0.5)
    assert found.backlog_s == pytest.approx(0.075)
    assert found.variance_per_s == pytest.approx(5.0 * 0.1**2)


@given(
    prompt=st.floats(1, 30_000),
    prompt_cv=st.floats(0, 3),
    output=st.floats(1, 300),
    output_cv=st.floats(0, 3),
    load=st.floats(0.001, 0.9999),
    level=st.floats(1.0, 64.0),
)
def test_output_token_tail_is_a_time_for_any_lengths_up_to_the_limit_of_the_engine(
    prompt: float, prompt_cv: float, output: float, output_cv: float, load: float, level: float
) -> None:
    shape = requests(prompt, output, prompt_cv=prompt_cv, output_cv=output_cv)
    work = work_of(QWEN_32B, shape)
    occupancy = occupancy_of(work, load / work.request_s)
    assert occupancy is not None
    mean_s, cv = mean_and_cv(occupancy, output_cv, level)
    assert mean_s >= work.fixed_s
    assert cv >= 0.0
