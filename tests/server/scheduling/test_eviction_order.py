"""Order of eviction from a cache: by last use, within each tenant's share."""

from __future__ import annotations

import itertools
from collections import OrderedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom_server.scheduling.eviction_order import LATELY, EvictionOrder

CAPACITY = 10


class Cache:
    """A cache of `CAPACITY` entries; a request asks for a key of its tenant."""

    def __init__(self) -> None:
        self.order: EvictionOrder[tuple[str, int]] = EvictionOrder(CAPACITY)
        self.kept: set[tuple[str, int]] = set()

    def ask(self, tenant: str, number: int) -> bool:
        """Return whether it was a hit."""
        key = (tenant, number)
        if key in self.kept:
            self.order.use(key)
            return True
        if len(self.kept) == CAPACITY:
            gone = self.order.next_for(tenant)
            self.order.give_back(self.order.remove(gone), 1)
            self.kept.remove(gone)
        self.order.take(tenant, 1)
        self.order.keep(key, tenant)
        self.kept.add(key)
        return False


@pytest.mark.parametrize("each_time", [1, 5, 20])
def test_tenant_that_asks_something_new_each_time_drops_its_own(each_time: int) -> None:
    """Before, each round of 10 new keys dropped all that the other asks again and again."""
    cache, hits = Cache(), 0
    numbers = itertools.count()
    for number in range(4):
        cache.ask("steady", number)
    for _ in range(200):
        for number in range(4):
            hits += cache.ask("steady", number)
        for new in itertools.islice(numbers, each_time):
            assert not cache.ask("flood", new)
    assert hits == 800
    assert cache.order.held("flood") == CAPACITY - 4


def test_tenant_that_needs_most_has_what_others_do_not_use() -> None:
    cache = Cache()
    for number in range(4):
        cache.ask("gone", number)
    for number in range(LATELY * CAPACITY - 4):
        cache.ask("busy", number)
    assert cache.order.held("gone") == 4
    for number in range(1000, 1000 + CAPACITY):
        cache.ask("busy", number)
    assert cache.order.held("gone") == 0, (
        "they were not used while the cache was filled eight times"
    )
    assert all(cache.ask("busy", number) for number in range(1000, 1000 + CAPACITY))


def test_newcomer_drops_what_was_not_used_for_longest() -> None:
    cache = Cache()
    for number in range(CAPACITY):
        cache.ask("first", number)
    cache.ask("first", 0)
    cache.ask("newcomer", 0)
    assert ("first", 1) not in cache.kept
    assert cache.order.held("newcomer") == 1


def test_entry_in_use_counts_for_its_tenant_and_does_not_go() -> None:
    """As blocks of sequences that run."""
    order: EvictionOrder[str] = EvictionOrder(4)
    for tenant, key in (("small", "s"), ("large", "l1"), ("large", "l2")):
        order.take(tenant, 1)
        order.keep(key, tenant)
    assert order.remove("l1") == "large"
    assert order.held("large") == 2
    assert order.next_for("large") == "l2"
    order.remove("l2")
    assert order.next_for("large") == "s", "it has nothing of its own that may go"


@settings(max_examples=200)
@given(st.lists(st.integers(0, 15), max_size=80))
def test_one_tenant_has_plain_lru(asked: list[int]) -> None:
    cache = Cache()
    model: OrderedDict[int, None] = OrderedDict()
    for number in asked:
        assert cache.ask("", number) == (number in model)
        model.pop(number, None)
        model[number] = None
        if len(model) > CAPACITY:
            model.popitem(last=False)
        assert cache.kept == {("", one) for one in model}


@settings(max_examples=100)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 8)), max_size=150))
def test_what_tenants_hold_is_what_is_kept(asked: list[tuple[str, int]]) -> None:
    cache = Cache()
    for tenant, number in asked:
        cache.ask(tenant, number)
        assert len(cache.kept) == len(cache.order) <= CAPACITY
        for one in "abcd":
            assert cache.order.held(one) == sum(owner == one for owner, _ in cache.kept)
