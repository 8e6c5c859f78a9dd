"""Composition of a batch if lengths, priorities, tenants and deadlines differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom_server.scheduling.batch_selection import Prices
from headroom_server.scheduling.batching import Batcher
from headroom_server.scheduling.cost_model import CostModel
from headroom_server.scheduling.entries import CloseReason, QueueEntry

MAX = 4
# t(b) = 1 s + b * (0.1 s at length 1, 0.2 s at 2, 0.8 s at 8)
COST = CostModel.from_warm_up(
    (b, 1.0 + 0.1 * length * b, length) for length in (0, 1, 2, 8) for b in range(1, MAX + 1)
)


def one(
    key: int,
    length: int = 0,
    *,
    due_s: float | None = None,
    priority: int = 5,
    tenant: str = "",
    items: int = 1,
    arrived_s: float | None = None,
) -> QueueEntry[str]:
    came_s = 0.001 * key if arrived_s is None else arrived_s
    return QueueEntry(key, items, came_s, due_s, "", length, priority, tenant, 10)


def queue(
    entries: Sequence[QueueEntry[str]], cost: CostModel | None = None, max_wait_s: float = 0.0
) -> Batcher[str]:
    batcher: Batcher[str] = Batcher(MAX, max_wait_s=max_wait_s)
    batcher.prices = Prices(MAX, cost)
    for entry in entries:
        batcher.add(entry)
    return batcher


def batches(batcher: Batcher[str], now_s: float = 0.0) -> list[list[int]]:
    found = []
    while len(batcher):
        found.append([entry.key for entry in batcher.seal(now_s).batch])
    return found


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        pytest.param([8, 8, 8], [[0, 1, 2]], id="one length: as they came"),
        pytest.param([1, 8, 1, 1], [[0, 2, 3], [1]], id="the longer one waits for its own batch"),
        pytest.param([8, 1, 8, 1], [[0, 2], [1, 3]], id="8 s for 2 more: more than 1.2 s apart"),
        # a batch of their own costs 1.2 s for both, to be padded from 1 to 2 only 0.4 s
        pytest.param([2, 1, 1], [[0, 1, 2]], id="a little padding is cheaper than a batch"),
        pytest.param([2, 1, 2, 2, 2, 1], [[0, 2, 3, 4], [1, 5]], id="its own length goes first"),
        pytest.param([1, 2, 8], [[0, 1], [2]], id="1.8 s together, 1.1 + 1.4 s apart; 8 is costly"),
    ],
)
def test_batch_is_built_around_the_first_request(
    lengths: list[int], expected: list[list[int]]
) -> None:
    # the longest costs 8 times as much per item: 7 more items' worth of work to pad a short one
    cost = CostModel.from_warm_up(
        (b, 1.0 + 0.1 * length**2 * b, length) for length in (1, 2, 8) for b in range(1, MAX + 1)
    )
    assert batches(queue([one(k, length) for k, length in enumerate(lengths)], cost)) == expected


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param(
            [one(0, 8, items=3), one(1, 1), one(2, 2)], [[0, 2], [1]], id="the longest fills first"
        ),
        pytest.param(
            [one(0, 8, items=2), one(1, 2, items=3), one(2, 1)],
            [[0], [1, 2]],
            id="a shorter one does not overtake a wide one that does not fit",
        ),
    ],
)
def test_room_is_filled_with_the_longest_that_are_shorter(
    entries: list[QueueEntry[str]], expected: list[list[int]]
) -> None:
    assert batches(queue(entries, COST)) == expected


@pytest.mark.parametrize(
    ("entries", "close"),
    [
        pytest.param([one(0)], CloseReason.IDLE, id="no other"),
        pytest.param([one(k) for k in range(MAX)], CloseReason.FULL, id="no room"),
        pytest.param([one(0), one(1, items=MAX)], CloseReason.FULL, id="the next does not fit"),
        pytest.param([one(0, 1), one(1, 8)], CloseReason.BUCKET, id="another length"),
        pytest.param([one(0, due_s=1.15), one(1)], CloseReason.DEADLINE, id="a larger one is late"),
    ],
)
def test_batch_reports_why_it_is_closed(entries: list[QueueEntry[str]], close: CloseReason) -> None:
    cost = CostModel.from_warm_up(
        [(b, 1.0 + 0.1 * (length**2 or 1) * b, length) for length in (0, 1, 8) for b in (1, 4)]
    )
    assert queue(entries, cost).seal(0.0).close is close


@given(st.lists(st.sampled_from([1, 2, 8]), min_size=1, max_size=40), st.data())
def test_request_never_starves(lengths: list[int], data: st.DataObject) -> None:
    batcher = queue([one(key, length) for key, length in enumerate(lengths)], COST)
    last = len(lengths) - 1
    taken, served = 0, set[int]()
    while last not in served:
        sealed = batcher.seal(0.0)
        served |= {entry.key for entry in sealed.batch}
        taken += 1
        assert 1 <= sealed.items <= MAX
        assert all(entry.length <= sealed.length for entry in sealed.batch)
        for key in range(100 * taken, 100 * taken + data.draw(st.integers(0, 6))):
            batcher.add(one(key, data.draw(st.sampled_from([1, 2, 8]))))
    assert taken <= len(lengths)


@given(st.lists(st.tuples(st.sampled_from([1, 2, 8]), st.integers(0, 3), st.integers(0, 9))))
def test_entry_leaves_the_queue_once(arrivals: list[tuple[int, int, int]]) -> None:
    batcher = queue(
        [
            one(key, length, tenant=f"{tenant}", priority=priority)
            for key, (length, tenant, priority) in enumerate(arrivals)
        ],
        COST,
    )
    left = [key for batch in batches(batcher) for key in batch]
    assert sorted(left) == list(range(len(arrivals)))
    assert (batcher.items, batcher.size, batcher.oldest_s()) == (0, 0, None)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param(
            [one(0, priority=5), one(1, priority=0), one(2, priority=9)],
            [[1, 0, 2]],
            id="the urgent first, and all in one batch",
        ),
        pytest.param(
            [*(one(k, priority=6) for k in range(4)), one(4, priority=5)],
            [[4, 0, 1, 2], [3]],
            id="one level is enough to go first",
        ),
        pytest.param(
            [one(0, priority=6, arrived_s=0.0), one(1, priority=5, arrived_s=1.1)],
            [[0, 1]],
            id="a second of waiting is worth a level",
        ),
        pytest.param(
            [*(one(k, tenant="a") for k in range(5)), one(5, tenant="b"), one(6, tenant="b")],
            [[0, 5, 1, 6], [2, 3, 4]],
            id="tenants take turns",
        ),
        pytest.param(
            [one(0, tenant="a", items=3), one(1, tenant="a"), one(2, tenant="b")],
            [[0, 2], [1]],
            id="shares are of items, not of requests",
        ),
    ],
)
def test_order_of_service_follows_priority_tenant_and_arrival(
    entries: list[QueueEntry[str]], expected: list[list[int]]
) -> None:
    assert batches(queue(entries), now_s=2.0) == expected


def test_late_tenant_gets_its_share_and_no_more() -> None:
    batcher = queue([one(key, tenant="a") for key in range(40)])
    for _ in range(5):
        batcher.seal(0.0)
    for key in range(40, 80):
        batcher.add(one(key, tenant="b"))
    served = Counter(entry.tenant for _ in range(5) for entry in batcher.seal(0.0).batch)
    assert served == {"a": 10, "b": 10}


def test_withdrawn_entry_returns_its_tenants_share() -> None:
    batcher = queue([one(key, tenant="a") for key in range(10)])
    batcher.add(one(10, tenant="b"))
    for key in range(1, 10):
        batcher.withdraw(key)
    batcher.add(one(11, tenant="a"))
    assert batches(batcher) == [[0, 10, 11]]


@pytest.mark.parametrize(
    ("dues_s", "expected", "expired"),
    [
        pytest.param([9.0] * 5, [0, 1, 2, 3], [], id="time enough: full"),
        pytest.param([1.05, 9.0], [1], [0], id="not even alone in time: never executed"),
        pytest.param([1.15, 9.0, 9.0], [0], [], id="alone it is in time, and delays no other"),
        # one after it, the two end at 2.3 s
        pytest.param([1.15, 2.4, 9.0], [0], [], id="the rest is in time after it"),
        pytest.param([1.15, 2.2, 9.0], [1, 2], [0], id="one of the rest would be late after it"),
        pytest.param([1.25, 9.0, 9.0, 9.0, 9.0], [1, 2, 3, 4], [0], id="one is shed for four"),
        pytest.param([1.35] * 3 + [1.2], [0, 1, 2], [], id="three in time, or one: three"),
        pytest.param([None, None], [0, 1], [], id="no deadline, no hurry"),
    ],
)
def test_batch_is_as_large_as_its_deadlines_allow(
    dues_s: list[float | None], expected: list[int], expired: list[int]
) -> None:
    # t(1) = 1.1 s, t(2) = 1.2 s, t(3) = 1.3 s, t(4) = 1.4 s
    cost = CostModel.from_warm_up((b, 1.0 + 0.1 * b) for b in range(1, 5))
    batcher = queue([one(key, due_s=due_s) for key, due_s in enumerate(dues_s)], cost)
    sealed = batcher.seal(0.0)
    assert [entry.key for entry in sealed.batch] == expected
    assert [entry.key for entry in sealed.expired] == expired


def test_maximum_wait_holds_a_small_batch_within_deadlines() -> None:
    cost = CostModel.from_warm_up((b, 1.0 + 0.1 * b) for b in range(1, 5))
    batcher = queue([one(0, arrived_s=0.0)], cost, max_wait_s=0.5)
    held = batcher.seal(0.1)
    assert (held.batch, held.again_s) == ((), 0.5)
    batcher.add(one(1, due_s=1.5))
    assert batcher.seal(0.1).again_s == pytest.approx(1.5 - 1.1 * 1.2)
    assert len(batcher.seal(0.19).batch) == 2
    batcher = queue([one(key, arrived_s=0.0) for key in range(MAX)], cost, max_wait_s=0.5)
    assert len(batcher.seal(0.0).batch) == MAX, "a full one does not wait"


@pytest.mark.parametrize("priority", [0, 4, 5])
def test_more_urgent_request_does_not_wait_for_the_backlog_of_another_tenant(priority: int) -> None:
    """The other tenant's requests have waited for 10 s, which is worth ten levels of priority."""
    batcher = queue([one(key, tenant="loud", arrived_s=0.1 * key) for key in range(100)])
    assert [entry.tenant for entry in batcher.seal(10.0).batch] == ["loud"] * MAX
    newcomer = one(200, tenant="quiet", priority=priority, arrived_s=10.0)
    ahead = batcher.ahead(newcomer).batches
    batcher.add(newcomer)
    assert 200 in [entry.key for entry in batcher.seal(10.0).batch]
    assert ahead < 1.0


def test_urgent_tenant_that_received_more_waits_for_older_requests_of_others() -> None:
    loud = [one(key, tenant="loud", priority=9, arrived_s=0.01 * key) for key in range(40)]
    batcher = queue(loud)
    for key in range(100, 140):
        batcher.add(one(key, tenant="urgent", priority=4, arrived_s=50.0))
    served = [entry.tenant for _ in range(10) for entry in batcher.seal(50.0).batch]
    assert Counter(served)["loud"] >= 20
    assert batcher.ahead(one(200, tenant="urgent", priority=4, arrived_s=50.0)).batches > 5.0
