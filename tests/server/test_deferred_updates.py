"""The cost model is the same whether batches are followed one by one or together."""

from __future__ import annotations

import pytest

from headroom_server.scheduling.cost_model import CostModel, Timing
from headroom_server.scheduling.deferred_updates import UPDATE_BATCHES, DeferredUpdates

SEED = CostModel.from_warm_up([(items, 0.006 + 0.0005 * items) for items in range(1, 9)])
TIMINGS = [Timing(1 + n % 8, (0.006 + 0.0005 * (1 + n % 8)) * (1 + n / 50)) for n in range(50)]


def applied(seed: CostModel, timings: list[Timing]) -> CostModel:
    for timing in timings:
        seed = seed.observe(*timing)
    return seed


def begun(seed: CostModel = SEED) -> DeferredUpdates:
    updates = DeferredUpdates()
    updates.begin(seed)
    return updates


@pytest.mark.parametrize(
    "count", [0, 1, UPDATE_BATCHES - 1, UPDATE_BATCHES, UPDATE_BATCHES + 1, 50]
)
def test_whoever_asks_hears_of_all_batches(count: int) -> None:
    updates = begun()
    for timing in TIMINGS[:count]:
        updates.add(timing)
    assert updates.current() == applied(SEED, TIMINGS[:count])


def test_nobody_asks_and_batches_are_followed_together() -> None:
    updates = begun()
    for timing in TIMINGS[: UPDATE_BATCHES - 1]:
        updates.add(timing)
    assert updates.applied == SEED
    updates.add(TIMINGS[UPDATE_BATCHES - 1])
    assert updates.applied == applied(SEED, TIMINGS[:UPDATE_BATCHES])


def test_after_a_request_with_a_deadline_each_is_followed_at_once() -> None:
    updates = begun()
    updates.current_for_admission()
    for count, timing in enumerate(TIMINGS[:UPDATE_BATCHES], start=1):
        updates.add(timing)
        assert updates.applied == applied(SEED, TIMINGS[:count])
    updates.add(TIMINGS[UPDATE_BATCHES])
    assert updates.applied == applied(SEED, TIMINGS[:UPDATE_BATCHES])


def test_where_lengths_differ_batches_are_chosen_by_what_each_has_shown() -> None:
    seed = CostModel.from_warm_up([(1, 0.01, 16), (4, 0.02, 16), (1, 0.02, 64), (4, 0.04, 64)])
    updates = begun(seed)
    updates.add(Timing(4, 0.03, 16))
    assert updates.applied == seed.observe(4, 0.03, 16)


def test_before_warm_up_nothing_is_known() -> None:
    assert DeferredUpdates().current() is DeferredUpdates().current_for_admission() is None
