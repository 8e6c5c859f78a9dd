"""Promises between the bounds of a histogram, which say little of what lies between them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headroom.scaling import Observation, Policy, State, decide
from headroom.scaling.generation.counters.spread import Alone, Spread, with_bound
from headroom.scaling.values.policy import Routing
from headroom.scaling.values.tokens import EngineLimits, Target, TokenTargets
from headroom.scaling.windows.histogram import attainment, percentile, rebinned
from headroom.simulator.generation.compiled.histogram_bounds import FIRST_BOUNDS_S, TOKEN_BOUNDS_S
from support.generating_plant import GeneratingPlant, varied_lengths
from support.generating_plants import LLAMA_70B

BOUNDS_S = (0.025, 0.05, 0.075, float("inf"))


@pytest.mark.parametrize(
    ("counts", "mean_s", "cv", "in_time"),
    [
        pytest.param((0, 100, 100, 100), 0.030, 0.1, 1.0, id="all well within"),
        pytest.param((0, 100, 100, 100), 0.040, 0.1, 0.5, id="half of them"),
        pytest.param((40, 100, 100, 100), 0.026, 0.1, 1.0, id="most of them by chance"),
        pytest.param((0, 90, 100, 100), 0.030, 0.1, 0.9, id="what is above the bucket is late"),
        pytest.param((20, 100, 100, 100), 0.012, 0.1, 0.68, id="contradicts: evenly"),
        pytest.param((20, 100, 100, 100), 0.200, 0.1, 0.68, id="contradicts from above: evenly"),
    ],
)
def test_answers_in_the_bucket_of_a_promise_lie_where_the_model_expects_them(
    counts: tuple[float, ...], mean_s: float, cv: float, in_time: float
) -> None:
    known = np.array(counts, dtype=float)
    share = Spread(mean_s=mean_s, cv=cv).share_within(BOUNDS_S, known, 0.040)
    bounds_s, split = with_bound(BOUNDS_S, known, 0.040, share)
    assert attainment(bounds_s, split, 0.0, 0.040) == pytest.approx(in_time, abs=0.03)
    p95 = percentile(bounds_s, split, 0.0, 0.95)
    assert p95 is not None
    assert (p95 <= 0.040) == (in_time >= 0.95)


@pytest.mark.parametrize(
    "counts",
    [pytest.param((0, 0, 0, 0), id="no request"), pytest.param((9, 9, 9, 9), id="none in it")],
)
def test_an_empty_bucket_is_not_split(counts: tuple[float, ...]) -> None:
    known = np.array(counts, dtype=float)
    assert Spread(mean_s=0.030, cv=0.1).share_within(BOUNDS_S, known, 0.040) is None


def test_a_promise_at_a_bound_needs_no_model() -> None:
    known = np.array([50.0, 100.0, 100.0, 100.0])
    assert Spread(mean_s=0.030, cv=0.1).share_within(BOUNDS_S, known, 0.050) is None


def test_a_promise_within_a_bucket_that_all_answers_keep_adds_no_replicas() -> None:
    """Mostly 25 to 35 ms per token, promised 40: vLLM counts them all between 25 and 50 ms."""
    targets = TokenTargets(
        first_token=Target(percentile=0.95, seconds=2.0),
        output_token=Target(percentile=0.95, seconds=0.040),
    )
    policy = Policy(
        latency_target_s=42.0,
        token_targets=targets,
        routing=Routing.LEAST_IN_FLIGHT,
        max_replicas=40,
    )
    limits = EngineLimits(kv_tokens=450_000, sequences=256, iteration_tokens=8192)
    plant = GeneratingPlant(
        cost=LLAMA_70B, limits=limits, lengths=varied_lengths(1000, 200), rate_rps=lambda t: 5.0
    )
    plant.scale(1, at_once=True)
    state, replicas = State.initial(), set()
    while plant.now_s < 480.0:
        plant.run(2.0)
        decision, state = decide(policy, state, _as_vllm_counts(plant.observe()))
        replicas.add(decision.replicas)
        plant.scale(decision.replicas)
    late = [value > 0.040 for engine in plant.engines for value in engine.token.values]
    assert sum(late) < 0.05 * len(late)
    assert decision.generation is not None
    assert decision.generation.output_token is not None
    assert decision.generation.output_token.late_share == pytest.approx(0.0, abs=0.05)
    assert replicas == {1}
    assert state.margin.beta == 0.0


@pytest.mark.parametrize(
    ("counts", "median_s", "in_time"),
    [
        pytest.param((0, 100, 100), 1.2, 1.0, id="none waited"),
        pytest.param((0, 100, 100), 0.2, 1 / 3, id="all waited"),
        pytest.param((50, 100, 100), 1.2, 1.0, id="as many as without a queue"),
        pytest.param((0, 90, 100), 1.2, 0.9, id="what is above the bucket is late"),
        pytest.param((0, 100, 100), 2.2, 0.0, id="late by their own prompts"),
    ],
)
def test_first_tokens_in_the_bucket_of_a_promise_lie_where_they_would_alone(
    counts: tuple[float, ...], median_s: float, in_time: float
) -> None:
    bounds_s, known = (1.0, 2.5, float("inf")), np.array(counts, dtype=float)
    alone = Alone.through(median_s, 1.1 * median_s, 0.95)
    assert alone is not None
    split = with_bound(bounds_s, known, 1.5, alone.share_within(bounds_s, known, 1.5))
    assert attainment(*split, 0.0, 1.5) == pytest.approx(in_time, abs=0.01)


def test_first_tokens_in_the_bucket_of_their_promise_lie_where_the_model_expects_them() -> None:
    """Prompts take about 1.2 s each, promised 1.5: vLLM counts them all between 1 and 2.5 s."""
    targets = TokenTargets(first_token=Target(percentile=0.95, seconds=1.5))
    policy = Policy(latency_target_s=42.0, token_targets=targets, max_replicas=40)
    limits = EngineLimits(kv_tokens=450_000, sequences=256, iteration_tokens=8192)
    plant = GeneratingPlant(
        cost=LLAMA_70B, limits=limits, lengths=lambda _: (16_000, 50), rate_rps=lambda t: 0.02
    )
    plant.scale(1, at_once=True)
    state, shares = State.initial(), []
    while plant.now_s < 1200.0:
        plant.run(2.0)
        decision, state = decide(policy, state, _as_vllm_counts(plant.observe()))
        found = None if decision.generation is None else decision.generation.first_token
        if plant.now_s > 900.0 and found is not None and found.late_share is not None:
            shares.append(found.late_share)
    first = [value for engine in plant.engines for value in engine.first.values]
    assert min(first) > 1.0
    assert sum(value > 1.5 for value in first) <= 0.1 * len(first)
    assert np.mean(shares) < 0.1


def _as_vllm_counts(observation: Observation) -> Observation:
    """Return what is seen with vLLM's bounds for the times of tokens."""
    samples = []
    for one in observation.samples:
        page = one.generation
        assert page is not None
        assert page.output_token is not None
        coarse = replace(
            page,
            first_token=rebinned(page.first_token, FIRST_BOUNDS_S) if page.first_token else None,
            output_token=rebinned(page.output_token, TOKEN_BOUNDS_S),
        )
        samples.append(replace(one, generation=coarse))
    return replace(observation, samples=tuple(samples))


def test_spread_needs_a_percentile_above_the_median() -> None:
    assert Spread.through(0.2, 0.2, 0.5) is None
    assert Spread.through(0.2, 0.4, 0.9) is not None
