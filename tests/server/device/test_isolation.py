"""Requests that fail after a failed batch, the cost of finding them, and the next batch size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom_server.device.isolation import (
    RECOVERY_BATCHES,
    Budget,
    Failure,
    FailureStreak,
    isolate,
    portions,
)

How = Callable[[Sequence[int]], Failure | None]


def tried(size: int, how: How) -> tuple[list[int], list[list[int]]]:
    """The failed requests of the batch 0..size-1, and what was executed after its failure."""
    batch, executed = list(range(size)), []
    assert how(batch) is not None
    steps, outcome = isolate(batch), None
    try:
        while True:
            part = steps.send(outcome)
            executed.append(list(part))
            outcome = how(part)
    except StopIteration as end:
        return end.value, executed


def poisoned(*bad: int) -> How:
    return lambda part: Failure.ERROR if set(bad) & set(part) else None


def room_for(most: int) -> How:
    return lambda part: Failure.MEMORY if len(part) > most else None


@pytest.mark.parametrize(
    ("size", "how", "failed", "executed"),
    [
        pytest.param(1, poisoned(0), [0], [], id="alone: it must be the cause"),
        pytest.param(2, poisoned(1), [1], [[0], [1]], id="of two"),
        pytest.param(
            8,
            poisoned(5),
            [5],
            [[0, 1, 2, 3], [4, 5, 6, 7], [4, 5], [6, 7], [4], [5]],
            id="of eight",
        ),
        pytest.param(3, poisoned(0, 1, 2), [2, 0, 1], [[0, 1], [2], [0], [1]], id="all"),
        pytest.param(8, room_for(4), [], [[0, 1, 2, 3], [4, 5, 6, 7]], id="halves fit"),
        pytest.param(
            4, room_for(1), [], [[0, 1], [2, 3], [0], [1], [2], [3]], id="halves do not fit"
        ),
        pytest.param(
            8,
            lambda part: room_for(4)(part) or poisoned(1)(part),
            [1],
            [[0, 1, 2, 3], [4, 5, 6, 7], [0, 1], [2, 3], [0], [1]],
            id="halves fit, and one holds a poisoned request",
        ),
    ],
)
def test_isolation_executes_halves_after_a_failed_batch(
    size: int, how: How, failed: list[int], executed: list[list[int]]
) -> None:
    assert tried(size, how) == (failed, executed)


@settings(max_examples=100)
@given(st.integers(1, 64), st.data())
def test_isolation_fails_exactly_the_bad_requests_at_logarithmic_cost(
    size: int, data: st.DataObject
) -> None:
    bad = data.draw(st.sets(st.integers(0, size - 1), min_size=1))
    failed, executed = tried(size, poisoned(*bad))
    assert set(failed) == bad
    assert len(failed) == len(bad)
    assert len(executed) <= 2 * len(bad) * math.ceil(math.log2(size))


def test_third_failure_in_a_row_makes_a_probe_due() -> None:
    failure_streak = FailureStreak()
    for failure, due in (
        (Failure.ERROR, False),
        (Failure.ERROR, False),
        (None, False),
        (Failure.ERROR, False),
        (Failure.MEMORY, False),
        (Failure.ERROR, False),
        (Failure.ERROR, True),
    ):
        failure_streak = failure_streak.after(failure)
        assert failure_streak.due is due


@given(st.integers(2, 64), st.data())
def test_single_bad_request_never_makes_a_probe_due(size: int, data: st.DataObject) -> None:
    how = poisoned(data.draw(st.integers(0, size - 1)))
    failure_streak = FailureStreak().after(Failure.ERROR)
    for part in tried(size, how)[1]:
        failure_streak = failure_streak.after(how(part))
        assert not failure_streak.due


def test_memory_budget_is_halved_at_once_and_recovers_slowly() -> None:
    budget = Budget.of(64).after(64, Failure.MEMORY)
    assert (budget.cells, budget.share) == (32, 0.5)
    assert budget.after(20, Failure.MEMORY).cells == 10, "below what did not fit"
    assert budget.after(32, Failure.ERROR) == budget
    for _ in range(RECOVERY_BATCHES - 1):
        budget = budget.after(1, None)
    assert budget.cells == 32
    grown = []
    for _ in range(5 * RECOVERY_BATCHES):
        budget = budget.after(1, None)
        grown.append(budget.cells)
    # an eighth of 64 every 100 batches, up to all of it
    assert sorted(set(grown)) == [40, 48, 56, 64]


@pytest.mark.parametrize(("length", "items"), [(0, 100), (1, 100), (16, 6), (100, 1), (512, 1)])
def test_memory_budget_allows_fewer_long_items_and_at_least_one(length: int, items: int) -> None:
    assert Budget(512, 100).items(length) == items


@pytest.mark.parametrize(
    ("sizes", "most", "runs"),
    [
        ([1, 1, 1, 1], 4, [4]),
        ([1, 1, 1, 1], 3, [3, 1]),
        ([2, 2, 3, 1], 4, [2, 2]),
        ([5, 1, 6, 1], 4, [1, 1, 1, 1]),
    ],
)
def test_batch_is_split_into_portions_that_fit(
    sizes: list[int], most: int, runs: list[int]
) -> None:
    assert [run.stop - run.start for run in portions(sizes, most)] == runs
