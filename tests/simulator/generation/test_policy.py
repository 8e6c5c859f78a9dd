"""The compiled plant against a plain copy of the policy that steps one iteration at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from headroom.simulator.generation.compiled import kernel
from headroom.simulator.generation.compiled.layout import Column, Plant, Row
from headroom.simulator.generation.plant import Engine, TokenRouting
from headroom.simulator.generation.requests import Requests
from simulator.generation import one_by_one
from simulator.generation.plants import H100_8B, exponential, fixed, poisson, ran


def _shared(count: int, seed: int) -> Requests:
    """Conversations: each prompt continues another's, in blocks of 512 tokens."""
    random = np.random.default_rng(seed)
    histories = [[100 * talk] for talk in range(6)]
    prompts, ids = [], []
    for _ in range(count):
        history = histories[int(random.integers(6))]
        history.append(history[0] + len(history))
        own = history[: 1 + int(random.integers(len(history)))][:12]
        ids.append(own)
        prompts.append(512 * len(own) - int(random.integers(512)))
    lengths = [len(own) for own in ids]
    return Requests(
        arrival_s=np.cumsum(random.exponential(0.4, count)),
        prompt_tokens=np.array(prompts),
        output_tokens=random.integers(1, 200, count),
        block_ids=np.concatenate([np.array(own) for own in ids]),
        block_starts=np.concatenate(([0], np.cumsum(lengths))),
    )


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    kv_tokens=st.sampled_from([2_500, 6_000, 40_000]),
    sequences=st.sampled_from([2, 7, 64]),
    budget=st.sampled_from([64, 512, 4096]),
    rate=st.sampled_from([1.0, 6.0, 40.0]),
)
def test_plant_of_random_requests_equals_every_single_iteration(
    seed: int, kv_tokens: int, sequences: int, budget: int, rate: float
) -> None:
    engine = Engine(
        cost=H100_8B,
        kv_tokens=kv_tokens,
        sequences=sequences,
        iteration_tokens=budget,
        noise_cv=0.0,
    )
    requests = poisson(rate, exponential(500, 80, seed), exponential(150, 80, seed + 1), seed)
    requests = requests.bounded(engine.context_tokens)
    records = one_by_one.played(engine, requests)

    plant = ran(engine, requests)

    assert plant.first_s.tolist() == pytest.approx([record.first_s for record in records], rel=1e-9)
    assert plant.end_s.tolist() == pytest.approx([record.end_s for record in records], rel=1e-9)
    assert plant.preempted.tolist() == [record.preemptions for record in records]
    assert plant.rows[0, Row.USED] == plant.rows[0, Row.DECODING] == 0


@pytest.mark.parametrize("kv_tokens", [12_000, 30_000, 200_000])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_plant_with_shared_prefixes_equals_every_single_iteration(
    kv_tokens: int, seed: int
) -> None:
    engine = Engine(cost=H100_8B, kv_tokens=kv_tokens, iteration_tokens=2048, noise_cv=0.0)
    requests = _shared(150, seed)
    records = one_by_one.played(engine, requests)

    plant = ran(engine, requests)

    assert plant.first_s.tolist() == pytest.approx([record.first_s for record in records], rel=1e-9)
    assert plant.end_s.tolist() == pytest.approx([record.end_s for record in records], rel=1e-9)
    assert plant.counters[0, Column.CACHED] > 0


def test_counters_of_a_settled_plant_are_those_of_its_iterations() -> None:
    engine = Engine(cost=H100_8B, kv_tokens=400_000, noise_cv=0.0)
    requests = poisson(5.0, fixed(700, 200), fixed(90, 200))

    plant = ran(engine, requests)
    counters = plant.counters[0]

    assert counters[Column.GENERATED] == 200 * 90
    assert counters[Column.COMPUTED] == 200 * 700
    assert counters[Column.ITERATIONS] == plant.whole[Plant.ITERATIONS]
    xx, xy = counters[Column.SUMS : Column.SUMS + 15], counters[Column.SUMS + 15 :][:5]
    assert xx[0] == counters[Column.ITERATIONS]
    assert xy[0] == pytest.approx(counters[Column.ENGINE_S])
    cost = [5.71e-3, 1.676e-5, 1.436e-5, 4.10e-8, 1.0e-9]
    assert np.dot(xx[:5], cost) == pytest.approx(xy[0], rel=1e-9)
    fourth = xx[[3, 7, 10, 12, 13]]  # KV with 1, P, D, KV, X
    assert np.dot(fourth, cost) == pytest.approx(xy[3], rel=1e-9)


def test_looks_in_between_do_not_change_what_happens() -> None:
    engine = Engine(cost=H100_8B, kv_tokens=60_000, noise_cv=0.0)
    requests = poisson(8.0, exponential(800, 300), exponential(200, 300))
    alone = ran(engine, requests)
    looked = ran(engine, requests, until_s=0.0)
    for now_s in np.arange(0.0, 200.0, 0.37):
        kernel.advance(looked, now_s)
        kernel.settle(looked, now_s)
    kernel.advance(looked, np.inf)

    assert_allclose(looked.end_s, alone.end_s, rtol=1e-9)
    assert_allclose(looked.counters, alone.counters, rtol=1e-6)


def test_prefix_affinity_computes_fewer_prompts_than_random_routing() -> None:
    engine = Engine(cost=H100_8B, kv_tokens=60_000)
    requests = _shared(600, 5)

    computed = {
        routing: ran(engine, requests, rows=4, routing=routing).counters[:, Column.COMPUTED].sum()
        for routing in (TokenRouting.RANDOM, TokenRouting.PREFIX_AFFINITY)
    }

    assert computed[TokenRouting.PREFIX_AFFINITY] < 0.8 * computed[TokenRouting.RANDOM]


def test_least_in_flight_spreads_simultaneous_arrivals_over_all_rows() -> None:
    requests = Requests(
        arrival_s=np.full(16, 1.0), prompt_tokens=fixed(100, 16), output_tokens=fixed(50, 16)
    )

    plant = ran(Engine(cost=H100_8B, kv_tokens=60_000), requests, rows=4)

    assert np.bincount(plant.place).tolist() == [4, 4, 4, 4]


def test_prompt_as_long_as_the_memory_waits_until_all_of_it_fits() -> None:
    """Admitted by its first chunk alone, it was computed again and again while others decoded."""
    engine = Engine(cost=H100_8B, kv_tokens=60_000, noise_cv=0.0)
    requests = Requests(
        arrival_s=np.array([0.0, 1.0, 2.0]),
        prompt_tokens=np.array([500, engine.context_tokens - 1, 500]),
        output_tokens=np.array([2_000, 1, 10]),
    )

    plant = ran(engine, requests)

    assert plant.preempted.sum() == 0
    assert plant.counters[0, Column.COMPUTED] == requests.prompt_tokens.sum()
    assert plant.end_s[0] <= plant.first_s[1] <= plant.first_s[2]


def test_gateway_rejects_what_exceeds_its_bound() -> None:
    requests = Requests(
        arrival_s=np.full(16, 1.0), prompt_tokens=fixed(100, 16), output_tokens=fixed(50, 16)
    )
    plant = ran(Engine(cost=H100_8B, kv_tokens=60_000), requests, rows=4, until_s=0.0)
    plant.whole[Plant.MOST_IN_FLIGHT] = 3

    kernel.advance(plant, np.inf)

    assert plant.whole[Plant.REJECTED] == np.isnan(plant.end_s).sum() == 4
    assert np.bincount(plant.place[plant.place >= 0]).tolist() == [3, 3, 3, 3]
