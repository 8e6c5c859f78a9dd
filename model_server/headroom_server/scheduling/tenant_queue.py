"""The waiting entries of one priority, in order of service. Pure.

Tenants share the device's time equally: an entry's level is its tenant's service so far when its
turn comes (start-time fair queueing, Goyal 1996), in work: items by what one costs at its length.
A single tenant is served first come, first served. Idle tenants earn no credit: they enter at the
level of those served last, which also rises with each round of newcomers (see `tenant_shares`). An
entry that leaves unserved returns its share.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Generic, TypeVar

from headroom_server.scheduling.entries import QueueEntry, QueuePosition
from headroom_server.scheduling.tenant_shares import Newcomers

T = TypeVar("T")

KEPT_TENANTS = 64
"""Accounts of tenants that do not wait are removed once there are more than this."""


class TenantQueue(Generic[T]):
    """The waiting entries of one priority."""

    __slots__ = (
        "_accounts",
        "_by_age",
        "_newcomers",
        "_turn",
        "_waiting",
        "items",
        "level",
        "order",
    )

    def __init__(self) -> None:
        self.order: list[QueuePosition[T]] = []
        """In order of service."""
        self.items: dict[int, int] = {}
        """Items by padded length."""
        self.level = 0.0
        """The level of the last served entry."""
        self._by_age: OrderedDict[int, QueuePosition[T]] = OrderedDict()
        self._accounts: dict[str, tuple[float, float]] = {}
        """Per tenant: its service when all its waiting entries are served, and the level of its
        last entry, which keeps its entries in order after one has left and returned its share."""
        self._turn = 0
        self._waiting: dict[str, int] = {}
        """Waiting entries of each tenant that has some."""
        self._newcomers = Newcomers()

    def __len__(self) -> int:
        """Return the number of waiting entries."""
        return len(self.order)

    def __iter__(self) -> Iterator[QueueEntry[T]]:
        """Return the entries in order of service."""
        return map(_entry_of, self.order)

    def __contains__(self, key: int) -> bool:
        """Return whether the entry with this key waits here."""
        return key in self._by_age

    @property
    def tenants(self) -> int:
        """Number of tenants that wait."""
        return len(self._waiting)

    @property
    def accounts(self) -> int:
        """Number of remembered tenants."""
        return len(self._accounts)

    @property
    def oldest_s(self) -> float:
        """Arrival time of the entry that has waited longest."""
        return next(iter(self._by_age.values())).entry.arrived_s

    def entry(self, key: int) -> QueueEntry[T]:
        """Return the waiting entry with this key."""
        return self._by_age[key].entry

    def next_level(self, tenant: str) -> float:
        """Return the level of the tenant's next entry."""
        account = self._accounts.get(tenant) if self.order else None
        return self.level if account is None else max(self.level, *account)

    def ahead(self, tenant: str) -> int:
        """Return how many entries would be served before the tenant's next one."""
        level = self.next_level(tenant)
        if not self.order or self.order[-1].level <= level:
            return len(self.order)
        return bisect_right(self.order, level, key=lambda place: place.level)

    def items_ahead(self, tenant: str) -> Mapping[int, float]:
        """Return the items, by length, that would be served before the tenant's next ones."""
        order, count = self.order, self.ahead(tenant)
        if len(self.items) == 1 or not 0 < count < len(order):
            share = count / len(order) if order else 0.0
            return {length: share * items for length, items in self.items.items()}
        found: dict[int, float] = dict.fromkeys(self.items, 0.0)
        before = 2 * count <= len(order)  # what is shorter to count: those before, or those behind
        for _, _, entry, _ in order[:count] if before else order[count:]:
            found[entry.length] += entry.items
        if before:
            return found
        return {length: self.items[length] - behind for length, behind in found.items()}

    def add(self, entry: QueueEntry[T], work: float) -> None:
        """Add an entry after its tenant's others; its tenant is charged `work`.

        Raises:
            ValueError: the key already waits here.
        """
        order, level, tenant = self.order, self.level, entry.tenant
        if entry.key in self._by_age:
            raise ValueError(f"the key of an entry must be unique; {entry.key} is already queued")
        if not order:
            self._accounts.clear()
            self._turn = 0
            level = self.level = 0.0
            self._newcomers.begin()
        else:
            account = self._accounts.get(tenant)
            if account is not None:
                level = max(level, *account)
            if len(self._accounts) > KEPT_TENANTS + 2 * len(order):
                self._forget()
        self._accounts[tenant] = (level + work, level)
        self._waiting[tenant] = self._waiting.get(tenant, 0) + 1
        self._turn += 1
        place = self._by_age[entry.key] = QueuePosition(level, self._turn, entry, work)
        if not order or order[-1].level <= level:
            order.append(place)
        else:
            insort(order, place, key=_rank)
        self.items[entry.length] = self.items.get(entry.length, 0) + entry.items

    def serve(self, key: int) -> QueuePosition[T]:
        """Remove an entry to serve it; return the position that it had."""
        tenants = len(self._waiting)
        place = self._remove(key)
        if place.level > self.level:
            self.level = place.level
            self._newcomers.begin()
        else:
            self.level += self._newcomers.served(place.work, tenants)
        return place

    def withdraw(self, key: int) -> QueueEntry[T]:
        """Remove an entry without serving it."""
        place = self._remove(key)
        tenant = place.entry.tenant
        finish, last = self._accounts[tenant]
        self._accounts[tenant] = (finish - place.work, last)
        return place.entry

    def charge(self, tenant: str, work: float) -> None:
        """Charge a tenant for more than its entries were; those that wait are served later."""
        if not self.order:
            return
        finish, last = self._accounts.get(tenant, (self.level, self.level))
        self._accounts[tenant] = (max(self.level, finish) + work, last + work)
        if tenant not in self._waiting:
            return
        for at, place in enumerate(self.order):
            if place.entry.tenant == tenant:
                moved = place._replace(level=place.level + work)
                self.order[at] = self._by_age[place.entry.key] = moved
        self.order.sort(key=_rank)

    def _remove(self, key: int) -> QueuePosition[T]:
        place = self._by_age.pop(key)
        at = 0 if self.order[0] is place else bisect_left(self.order, _rank(place), key=_rank)
        del self.order[at]
        self.items[place.entry.length] -= place.entry.items
        tenant = place.entry.tenant
        self._waiting[tenant] -= 1
        if not self._waiting[tenant]:
            del self._waiting[tenant]
        return place

    def _forget(self) -> None:
        self._accounts = {
            tenant: account
            for tenant, account in self._accounts.items()
            if tenant in self._waiting or account[0] > self.level
        }


_entry_of = attrgetter("entry")


def _rank(place: QueuePosition[T]) -> tuple[float, int]:
    return place.level, place.turn
