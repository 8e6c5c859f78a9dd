"""The cost model is the same whether batches are followed one by one or together."""

from __future__ import annotations

import pytest

from headroom_server.scheduling.cost_model import CostModel, Timing
from headroom_server.scheduling.lessons import TOGETHER, Lessons

SEED = CostModel.from_warm_up([(items, 0.006 + 0.0005 * items) for items in range(1, 9)])
TIMINGS = [Timing(1 + n % 8, (0.006 + 0.0005 * (1 + n % 8)) * (1 + n / 50)) for n in range(50)]


def followed(seed: CostModel, timings: list[Timing]) -> CostModel:
    for timing in timings:
        seed = seed.observe(*timing)
    return seed


def begun(seed: CostModel = SEED) -> Lessons:
    lessons = Lessons()
    lessons.begin(seed)
    return lessons


@pytest.mark.parametrize("count", [0, 1, TOGETHER - 1, TOGETHER, TOGETHER + 1, 50])
def test_whoever_asks_hears_of_all_batches(count: int) -> None:
    lessons = begun()
    for timing in TIMINGS[:count]:
        lessons.add(timing)
    assert lessons.cost() == followed(SEED, TIMINGS[:count])


def test_nobody_asks_and_batches_are_followed_together() -> None:
    lessons = begun()
    for timing in TIMINGS[: TOGETHER - 1]:
        lessons.add(timing)
    assert lessons.followed == SEED
    lessons.add(TIMINGS[TOGETHER - 1])
    assert lessons.followed == followed(SEED, TIMINGS[:TOGETHER])


def test_after_a_request_with_a_deadline_each_is_followed_at_once() -> None:
    lessons = begun()
    lessons.asked()
    for count, timing in enumerate(TIMINGS[:TOGETHER], start=1):
        lessons.add(timing)
        assert lessons.followed == followed(SEED, TIMINGS[:count])
    lessons.add(TIMINGS[TOGETHER])
    assert lessons.followed == followed(SEED, TIMINGS[:TOGETHER])


def test_where_lengths_differ_batches_are_chosen_by_what_each_has_shown() -> None:
    seed = CostModel.from_warm_up([(1, 0.01, 16), (4, 0.02, 16), (1, 0.02, 64), (4, 0.04, 64)])
    lessons = begun(seed)
    lessons.add(Timing(4, 0.03, 16))
    assert lessons.followed == seed.observe(4, 0.03, 16)


def test_before_warm_up_nothing_is_known() -> None:
    assert Lessons().cost() is Lessons().asked() is None
