"""The cost model is the same whether batches are applied one by one or together."""

from __future__ import annotations

import pytest

from headroom_server.scheduling.cost_model import CostModel, Timing
from headroom_server.scheduling.deferred_updates import DeferredUpdates

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


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 50])
def test_reading_the_model_applies_all_batches(count: int) -> None:
    updates = begun()
    for timing in TIMINGS[:count]:
        updates.add(timing)
    assert updates.current() == applied(SEED, TIMINGS[:count])


def test_unread_model_is_updated_rarely_but_regularly() -> None:
    updates, changes, before = begun(), 0, SEED
    for timing in 10 * TIMINGS:
        updates.add(timing)
        changes += updates.applied is not before
        before = updates.applied or before
    assert 5 <= changes <= len(TIMINGS)
    assert before != SEED


def test_model_read_by_admission_is_updated_per_batch() -> None:
    updates = begun()
    for count, timing in enumerate(TIMINGS, start=1):
        updates.current_for_admission()
        updates.add(timing)
        assert updates.applied == applied(SEED, TIMINGS[:count])


def test_model_with_several_lengths_is_updated_per_batch() -> None:
    seed = CostModel.from_warm_up([(1, 0.01, 16), (4, 0.02, 16), (1, 0.02, 64), (4, 0.04, 64)])
    updates = begun(seed)
    updates.add(Timing(4, 0.03, 16))
    assert updates.applied == seed.observe(4, 0.03, 16)


def test_model_before_warm_up_is_unknown() -> None:
    assert DeferredUpdates().current() is DeferredUpdates().current_for_admission() is None
