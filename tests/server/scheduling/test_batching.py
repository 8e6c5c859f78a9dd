"""The queue: work-conserving, first come first served, every entry leaves exactly once.

Lengths, priorities and tenants are tested in test_fair_batching.py.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headroom_server.scheduling.batching import Batcher
from headroom_server.scheduling.entries import QueueEntry

MAX = 4


def entry(key: int, items: int = 1, deadline_s: float | None = None) -> QueueEntry[str]:
    return QueueEntry(key, items, float(key), deadline_s, f"work {key}")


def keys(entries: tuple[QueueEntry[str], ...]) -> list[int]:
    return [one.key for one in entries]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        pytest.param([1], [0], id="one alone does not wait for company"),
        pytest.param([1, 1, 1], [0, 1, 2], id="all that fits goes together"),
        pytest.param([1] * 6, [0, 1, 2, 3], id="never more than the largest batch"),
        pytest.param([2, 3, 1], [0], id="what does not fit closes the batch, so none overtakes"),
        pytest.param([4, 1], [0], id="a full-width request goes alone"),
        pytest.param([], [], id="nothing waits, nothing goes"),
    ],
)
def test_batch_is_the_longest_run_of_oldest_that_fits(
    items: list[int], expected: list[int]
) -> None:
    batcher: Batcher[str] = Batcher(MAX)
    for key, width in enumerate(items):
        batcher.add(entry(key, width))
    assert keys(batcher.seal(now_s=0.0).batch) == expected


def test_expired_entries_are_reported_and_take_no_room() -> None:
    batcher: Batcher[str] = Batcher(2)
    for key, deadline_s in enumerate([5.0, None, 10.0, 5.0, None]):
        batcher.add(entry(key, deadline_s=deadline_s))
    sealed = batcher.seal(now_s=5.1)
    assert keys(sealed.batch) == [1, 2]
    assert keys(sealed.expired) == [0, 3]
    assert keys(batcher.seal(now_s=5.1).batch) == [4]


def test_withdrawn_entry_is_removed_once() -> None:
    batcher: Batcher[str] = Batcher(MAX)
    batcher.add(entry(0, items=3))
    assert batcher.withdraw(0) == entry(0, items=3)
    assert batcher.withdraw(0) is None
    assert (len(batcher), batcher.items, batcher.oldest_s()) == (0, 0, None)


@pytest.mark.parametrize("items", [0, MAX + 1])
def test_entry_larger_than_a_batch_raises(items: int) -> None:
    with pytest.raises(ValueError, match=f"1 to {MAX} items; got {items}"):
        Batcher[str](MAX).add(entry(0, items))


class Queue(RuleBasedStateMachine):
    """Any history of arrivals, withdrawals and batches, compared with the rules."""

    def __init__(self) -> None:
        super().__init__()
        self.batcher: Batcher[str] = Batcher(MAX)
        self.now_s = 0.0
        self.came: list[QueueEntry[str]] = []
        self.left: list[int] = []
        self.executed: list[int] = []

    @rule(items=st.integers(1, MAX), patience_s=st.none() | st.floats(0.0, 3.0))
    def arrives(self, items: int, patience_s: float | None) -> None:
        deadline_s = None if patience_s is None else self.now_s + patience_s
        one = QueueEntry(len(self.came), items, self.now_s, deadline_s, "")
        self.came.append(one)
        self.batcher.add(one)

    @rule(data=st.data())
    def is_withdrawn(self, data: st.DataObject) -> None:
        if self.came:
            key = data.draw(st.sampled_from([one.key for one in self.came]))
            waited = key not in self.left
            assert (self.batcher.withdraw(key) is not None) == waited
            if waited:
                self.left.append(key)

    @rule(step_s=st.floats(0.0, 2.0))
    def device_is_free(self, step_s: float) -> None:
        self.now_s += step_s
        waiting = [one for one in self.came if one.key not in self.left]
        sealed = self.batcher.seal(self.now_s)
        alive = [one for one in waiting if one.deadline_s is None or one.deadline_s >= self.now_s]
        assert bool(sealed.batch) == bool(alive), "never idle with work"
        assert sealed.items <= MAX
        assert keys(sealed.batch) == [one.key for one in alive][: len(sealed.batch)], "in order"
        assert all(one not in alive for one in sealed.expired), "none expires early"
        self.left += keys(sealed.batch) + keys(sealed.expired)
        self.executed += keys(sealed.batch)

    @invariant()
    def everyone_is_in_exactly_one_place(self) -> None:
        assert len(self.left) == len(set(self.left))
        assert len(self.batcher) == len(self.came) - len(self.left)
        assert self.batcher.items == sum(o.items for o in self.came if o.key not in self.left)

    @invariant()
    def first_come_first_served(self) -> None:
        assert self.executed == sorted(self.executed)


TestQueue = Queue.TestCase


@given(st.lists(st.integers(1, MAX), max_size=40))
def test_backlog_is_served_in_maximal_batches(
    items: list[int],
) -> None:
    batcher: Batcher[str] = Batcher(MAX)
    for key, width in enumerate(items):
        batcher.add(entry(key, width))
    while len(batcher):
        sealed = batcher.seal(0.0)
        following = len(items) - len(batcher)
        assert not len(batcher) or sealed.items + items[following] > MAX
