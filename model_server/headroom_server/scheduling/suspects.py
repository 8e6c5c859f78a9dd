"""Tenants whose requests failed a batch lately. Pure.

A batch that fails is executed again in parts: one bad request among 32 costs ten executions, 32
cost 63, and all others wait. A tenant that sent one may send more, so its requests share no batch
with those of other tenants for a while. Tenants that fail share theirs: a model that fails for all
alike is served in as few batches as before.

Their batches begin with one item, double with each that succeeds and are halved by each that fails:
where nearly all requests are bad, each costs one execution.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

APART_S = 300.0
"""Time from a tenant's last failure."""
KEPT = 1024
"""Names kept, those of the latest failures."""


class Apart(NamedTuple):
    """Tenants that share no batch with others, and the size of their batches."""

    tenants: Collection[str] = ()
    items: int = 1


class Suspects:
    """The suspected tenants, and the time until which each is suspected."""

    __slots__ = ("_items", "_max_batch_size", "_until_s")

    def __init__(self, max_batch_size: int) -> None:
        self._max_batch_size = max_batch_size
        self._until_s: dict[str, float] = {}
        """End of the suspicion by tenant, the oldest failure first."""
        self._items = 1

    def apart(self, now_s: float) -> Apart:
        """Return the tenants that are kept apart now."""
        until_s = self._until_s
        while until_s and next(iter(until_s.values())) <= now_s:
            del until_s[next(iter(until_s))]
        return Apart(until_s.keys(), self._items) if until_s else NONE_APART

    def failed(self, tenants: Iterable[str], now_s: float) -> None:
        """Record a batch that failed because of these tenants."""
        self._items = max(1, self._items // 2) if self._until_s else 1
        for tenant in tenants:
            self._until_s.pop(tenant, None)
            self._until_s[tenant] = now_s + APART_S
        while len(self._until_s) > KEPT:
            del self._until_s[next(iter(self._until_s))]

    def succeeded(self, tenant: str) -> None:
        """Record a batch without a failure that held a request of this tenant."""
        if tenant in self._until_s:
            self._items = min(self._max_batch_size, 2 * self._items)


NONE_APART = Apart()
