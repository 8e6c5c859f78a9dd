"""Shares of tenants in a queue: of the device's time, kept when requests leave in another order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom_server.scheduling.batch_selection import Prices
from headroom_server.scheduling.batching import Batcher
from headroom_server.scheduling.cost_model import CostModel
from headroom_server.scheduling.entries import QueueEntry
from headroom_server.scheduling.tenant_queue import KEPT_TENANTS, TenantQueue
from headroom_server.scheduling.tenant_shares import TenantShares

MAX = 4
# t(b) = 1 s + b * (0.1 s at length 1, 0.8 s at 8): short ones are not padded to 8
COST = CostModel.from_warm_up(
    (b, 1.0 + 0.1 * length * b, length) for length in (0, 1, 8) for b in range(1, MAX + 1)
)


def one(
    key: int,
    tenant: str,
    *,
    items: int = 1,
    length: int = 0,
    priority: int = 5,
    came_s: float = 0.0,
) -> QueueEntry[str]:
    return QueueEntry(key, items, came_s, None, "", length, priority, tenant, 10)


def queue(entries: Sequence[QueueEntry[str]], *, weighed: bool = False) -> Batcher[str]:
    batcher: Batcher[str] = Batcher(MAX)
    batcher.prices = Prices(MAX, COST)
    if weighed:
        batcher.weigh(COST)
    for entry in entries:
        batcher.add(entry)
    return batcher


def sealed(batcher: Batcher[str]) -> list[int]:
    return [entry.key for entry in batcher.seal(0.0).batch]


@pytest.mark.parametrize(
    ("waiting", "replaced"),
    [
        pytest.param(MAX + 1, None, id="exactly a batch less"),
        pytest.param(MAX + 2, MAX + 1, id="more than a batch less"),
    ],
)
def test_newcomer_replaces_the_last_if_its_tenant_had_more_than_a_batch_less(
    waiting: int, replaced: int | None
) -> None:
    batcher = queue([one(key, "loud") for key in range(waiting)])
    last = batcher.outranked(one(100, "quiet"))
    assert (None if last is None else last.key) == replaced
    assert batcher.outranked(one(100, "loud")) is None


def test_share_of_an_urgent_tenant_counts_items_of_what_it_received() -> None:
    """`wide` received one request of four items, `narrow` two of one item each."""
    batcher = queue([one(0, "wide", items=4)])
    sealed(batcher)
    for key in (1, 2):
        batcher.add(one(key, "narrow"))
        sealed(batcher)
    batcher.add(one(3, "wide", items=4))
    batcher.add(one(4, "narrow", priority=4, items=4, came_s=50.0))
    assert sealed(batcher) == [4]


def test_withdrawn_wide_request_returns_its_items_to_its_tenant() -> None:
    batcher = queue([one(0, "a"), one(1, "a", items=3), *(one(key, "b") for key in range(2, 6))])
    batcher.withdraw(1)
    batcher.add(one(6, "a"))
    assert sealed(batcher) == [0, 2, 3, 6]


def test_batch_of_another_length_gives_newcomers_no_credit() -> None:
    """The request of length 8 is served after later ones, at a lower level than they had."""
    batcher = queue(
        [
            one(0, "a", length=1, items=2),
            one(1, "a", length=8),
            one(2, "a", length=1, items=2),
            one(3, "a", length=1),
            one(4, "a", length=1),
        ]
    )
    assert [sealed(batcher), sealed(batcher)] == [[0, 2], [1]]
    for key in range(10, 14):
        batcher.add(one(key, "b", length=1))
    assert sealed(batcher) == [10, 11, 3, 12]


def test_account_of_a_tenant_that_was_served_outlives_many_others() -> None:
    tenants = KEPT_TENANTS + 10
    batcher = queue([one(0, "waits", items=4), one(1, "waits", items=2)])
    assert sealed(batcher) == [0]
    for key in range(2, tenants):
        batcher.add(one(key, f"tenant {key}", items=4))
    assert [sealed(batcher) for _ in range(2, tenants)] == [[key] for key in range(2, tenants)]
    batcher.add(one(1000, "tenant 2", items=2))
    assert sealed(batcher) == [1, 1000]


def test_shares_are_of_the_devices_time_whatever_the_lengths() -> None:
    """A full batch takes 1.4 s at length 1 and 4.2 s at length 8: three short ones for a long one.

    Shares of items gave the tenant of long requests three times as much time.
    """
    long = [one(key, "long", length=8) for key in range(400)]
    batcher = queue(
        [*long, *(one(key, "short", length=1) for key in range(400, 800))], weighed=True
    )
    seconds = dict.fromkeys(("long", "short"), 0.0)
    for _ in range(80):
        batch = batcher.seal(0.0)
        took_s = COST.batch_s(batch.items, batch.length)
        for entry in batch.batch:
            seconds[entry.tenant] += took_s / batch.items
    assert seconds["long"] == pytest.approx(seconds["short"], rel=0.1)


def test_wait_of_a_tenant_with_short_requests_counts_few_long_ones_of_another() -> None:
    """The mean of all that wait would be 100 long ones for each of its own that wait."""
    entries = [one(key, "long", length=8) for key in range(100)]
    batcher = queue([*entries, one(100, "short", length=1)], weighed=True)
    ahead = batcher.ahead(one(200, "short", length=1))
    assert ahead.seconds < 2 * COST.batch_s(MAX, 8)
    assert batcher.ahead(one(200, "long", length=8)).seconds > 20 * COST.batch_s(MAX, 8)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([1, 8]), st.integers(1, 3))),
    st.sampled_from("abcd"),
)
def test_items_ahead_are_those_of_the_entries_before_the_next_one(
    waiting: list[tuple[str, int, int]], tenant: str
) -> None:
    queue: TenantQueue[str] = TenantQueue()
    for key, (owner, length, items) in enumerate(waiting):
        queue.add(one(key, owner, items=items, length=length), items * length)
    counted = Counter[int]()
    for place in queue.order[: queue.ahead(tenant)]:
        counted[place.entry.length] += place.entry.items
    ahead = queue.items_ahead(tenant)
    if len(queue.items) > 1:
        assert {length: items for length, items in ahead.items() if items} == counted
    else:
        assert sum(ahead.values()) <= sum(queue.items.values())


def test_client_that_invents_tenants_cannot_starve_another_one() -> None:
    """A new tenant in each request kept the level at 0, and the second request was never served."""
    batcher = queue([one(key, "quiet") for key in range(10)])
    for key in range(100, 130):
        batcher.add(one(key, f"invented {key}"))
    left, key = set(range(10)), 130
    for _ in range(150):
        served = sealed(batcher)
        left -= set(served)
        for _ in served:
            batcher.add(one(key, f"invented {key}"))
            key += 1
    assert not left


def test_invented_tenants_do_not_accumulate() -> None:
    """20 000 of them had 20 000 accounts, each of which was looked at for each request."""
    waiting: TenantQueue[str] = TenantQueue()
    shares = TenantShares()
    for key in range(4000):
        waiting.add(one(key, f"invented {key}"), 1.0)
        if key > 30:
            waiting.serve(waiting.order[0].entry.key)
        shares.serve(f"invented {key}", 1.0, tenants=30)
        shares.forget(("waits",))
    assert len(shares) <= 1100
    assert waiting.accounts <= 200
