"""Order in which cached entries make room for a tenant's new one. Pure.

The least recently used goes first. But if its tenant holds less than the one that needs room, and
has used it lately, that one drops its own: else a tenant that asks something new each time would
have the whole cache, and all others none of what they use. Lately is by what has been cached since,
so that entries of tenants that stay away go in the end. With one tenant it is plain LRU.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

LATELY = 8
"""Additions, in whole caches, before an unused entry of a smaller tenant goes."""


class EvictionOrder(Generic[K]):
    """The entries of a cache that may go, and what each tenant holds of its `capacity`."""

    __slots__ = ("_capacity", "_entries", "_filled", "_held", "_own")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[K, tuple[Hashable, int]] = OrderedDict()
        """Tenant, and what had been filled at the last use; least recently used first."""
        self._own: dict[Hashable, OrderedDict[K, None]] = {}
        """The same order by tenant."""
        self._held: dict[Hashable, int] = {}
        self._filled = 0

    def __len__(self) -> int:
        """Return the number of entries that may go."""
        return len(self._entries)

    def held(self, tenant: Hashable) -> int:
        """Return the size of a tenant's entries."""
        return self._held.get(tenant, 0)

    def take(self, tenant: Hashable, amount: int) -> None:
        """Add to the size of a tenant's entries."""
        self._held[tenant] = self._held.get(tenant, 0) + amount
        self._filled += amount

    def give_back(self, tenant: Hashable, amount: int) -> None:
        """Subtract from the size of a tenant's entries."""
        left = self._held[tenant] - amount
        if left:
            self._held[tenant] = left
        else:
            del self._held[tenant]

    def keep(self, key: K, tenant: Hashable) -> None:
        """Add an entry that may go, as the most recently used."""
        self._entries[key] = tenant, self._filled
        self._own.setdefault(tenant, OrderedDict())[key] = None

    def use(self, key: K) -> None:
        """Make an entry the most recently used."""
        tenant = self.remove(key)
        self.keep(key, tenant)

    def remove(self, key: K) -> Hashable:
        """Remove an entry, which is held still or goes; return its tenant."""
        tenant, _ = self._entries.pop(key)
        own = self._own[tenant]
        del own[key]
        if not own:
            del self._own[tenant]
        return tenant

    def oldest(self) -> K:
        """Return the least recently used entry."""
        return next(iter(self._entries))

    def oldest_of(self, tenant: Hashable) -> K | None:
        """Return a tenant's least recently used entry, if it has one."""
        own = self._own.get(tenant)
        return None if own is None else next(iter(own))

    def next_for(self, tenant: Hashable) -> K:
        """Return the entry that goes to make room for a tenant."""
        key = self.oldest()
        other, used = self._entries[key]
        own = self.oldest_of(tenant)
        if own is None or other == tenant or self.held(other) >= self.held(tenant):
            return key
        return key if self._filled - used > LATELY * self._capacity else own
