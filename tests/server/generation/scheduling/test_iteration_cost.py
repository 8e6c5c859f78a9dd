"""The learned time of an iteration: exact for exact data, steady under noise, quick to follow."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom_server.generation.scheduling.costs.iteration_cost import Features, IterationCost
from headroom_server.generation.scheduling.scheduler import Scheduler
from support.generation_world import LIMITS, Device, World, request


def mixed(chance: random.Random) -> Features:
    chunk, before = chance.randrange(0, 2000), chance.randrange(0, 8000)
    decodes = chance.randrange(0, 64)
    return Features(
        chunk, decodes, decodes * chance.randrange(50, 3000), chunk * (before + chunk / 2)
    )


def learned(iterations: int, noise: float = 0.0, device: Device | None = None) -> IterationCost:
    chance, cost, true = random.Random(1), IterationCost(), device or Device()
    for _ in range(iterations):
        features = mixed(chance)
        cost.observe(features, true.seconds(features) * (1.0 + chance.uniform(-noise, noise)))
    return cost


LEARNED = learned(64)


def test_cost_of_exact_times_is_exact() -> None:
    cost, true, chance = learned(200), Device(), random.Random(2)
    for _ in range(50):
        features = mixed(chance)
        assert cost.seconds(features) == pytest.approx(true.seconds(features), rel=0.01)


def test_cost_under_noise_stays_within_a_few_percent() -> None:
    cost, true, chance = learned(500, noise=0.2), Device(), random.Random(3)
    errors = [cost.seconds(f) / true.seconds(f) - 1.0 for f in (mixed(chance) for _ in range(100))]
    assert max(map(abs, errors)) < 0.08


def test_cost_follows_a_device_that_became_slower() -> None:
    cost, chance = learned(300), random.Random(4)
    slow = Device(base_s=2 * Device.base_s, per_token_s=2 * Device.per_token_s)
    for _ in range(1500):
        features = mixed(chance)
        cost.observe(features, slow.seconds(features))
    features = Features(500, 8, 8000, 125_000)
    assert cost.seconds(features) == pytest.approx(slow.seconds(features), rel=0.1)


def test_one_hiccup_changes_little() -> None:
    cost, features = learned(300), Features(500, 8, 8000, 125_000)
    before_s = cost.seconds(features)
    for _ in range(16):
        cost.observe(features, 5.0 if _ == 3 else Device().seconds(features))
    assert cost.seconds(features) == pytest.approx(before_s, rel=0.05)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 5000), st.integers(0, 256), st.integers(0, 10**6), st.floats(1e-5, 10.0)
        ),
        min_size=1,
        max_size=40,
    )
)
def test_coefficients_of_any_times_are_never_negative(
    rows: list[tuple[int, int, int, float]],
) -> None:
    cost = IterationCost()
    for tokens, decodes, context, seconds in rows:
        cost.observe(Features(tokens, decodes, context, tokens * tokens / 2.0), seconds)
    terms = (cost.base_s, cost.per_token_s, cost.per_decode_s, cost.per_context_s)
    assert min(*terms, cost.per_product_s) >= 0.0


@given(st.integers(1, 8000), st.integers(0, 30_000))
def test_tokens_in_a_time_are_those_that_take_it(tokens: int, before: int) -> None:
    cost = LEARNED
    seconds = cost.prompt_s(tokens, before)
    assert cost.prompt_tokens_in(seconds, before) == pytest.approx(tokens, rel=1e-6)


def test_exported_sums_identify_the_cost() -> None:
    world = World()
    world.arrive(
        request(key, 50 + 97 * key % 900, 5 + key % 40, arrived_s=key * 0.03) for key in range(150)
    )
    world.run()
    counts = world.scheduler.statistics
    assert counts.cost_xx[0] == counts.iterations  # the constant's own product
    assert counts.cost_xy[0] == pytest.approx(world.busy_s)
    size, at = 5, 0
    matrix = [[0.0] * size for _ in range(size)]
    for i in range(size):
        for j in range(i, size):
            matrix[i][j] = matrix[j][i] = counts.cost_xx[at]
            at += 1
    true = Device()
    terms = (true.base_s, true.per_token_s, true.per_decode_s, true.per_context_s,
             true.per_product_s)  # fmt: skip
    for row, right in zip(matrix, counts.cost_xy, strict=True):
        assert sum(a * b for a, b in zip(row, terms, strict=True)) == pytest.approx(right)


def test_cost_is_known_after_four_iterations_and_follows_the_next_ones() -> None:
    cost, true = IterationCost(), Device()
    for at, (prompt, decodes) in enumerate([(16, 0), (512, 0), (0, 1), (0, 64)], 1):
        cost.observe(Features(prompt, decodes), true.seconds(Features(prompt, decodes)))
        assert cost.known is (at == 4)


def test_every_iteration_of_warm_up_counts_for_the_first_prediction_and_for_no_sum() -> None:
    scheduler, true = Scheduler(LIMITS), Device()
    for decodes in (1, 2, 4, 8, 16, 32, 64) * 2:
        scheduler.learn(Features(0, decodes), true.seconds(Features(0, decodes)))
    long = Features(512, 0, 0, 512 * 256)
    for _ in range(3):  # between two solutions of what traffic shows
        scheduler.learn(long, true.seconds(long))
    learned = IterationCost()
    for decodes in (1, 2, 4, 8, 16, 32, 64) * 2:
        learned.learn(Features(0, decodes), true.seconds(Features(0, decodes)))
    for _ in range(3):
        learned.learn(long, true.seconds(long))
    assert learned.seconds(long) == pytest.approx(true.seconds(long), rel=0.05)
    assert set(scheduler.statistics.cost_xx) == set(scheduler.statistics.cost_xy) == {0.0}
