"""The waiting requests of one priority, by tenant and by place. Pure."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush, heapreplace

from headroom_server.generation.scheduling.sequences import LiveSequence
from headroom_server.scheduling.tenant_shares import TenantShares


class SequenceHeap:
    """Sequences by a rank. Those that left stay in the heap until they come to its top."""

    __slots__ = ("_entries", "_rank", "live")

    def __init__(self, rank: Callable[[LiveSequence], float]) -> None:
        self._entries: list[tuple[float, int]] = []
        self._rank = rank
        self.live: dict[int, LiveSequence] = {}

    def push(self, sequence: LiveSequence) -> None:
        """Add a sequence."""
        key, rank = sequence.request.key, self._rank
        self.live[key] = sequence
        heappush(self._entries, (rank(sequence), key))
        if len(self._entries) > 64 + 2 * len(self.live):
            self._entries = sorted((rank(s), k) for k, s in self.live.items())

    def first(self) -> LiveSequence | None:
        """Return the sequence of the smallest rank."""
        entries, live = self._entries, self.live
        while entries:
            top = live.get(entries[0][1])
            if top is not None:
                return top
            heappop(entries)
        return None


def _place(sequence: LiveSequence) -> float:
    return sequence.place_s


def _length(sequence: LiveSequence) -> float:
    return len(sequence.tokens)


class TenantLine:
    """A tenant's waiting requests of one priority, by place and by length."""

    __slots__ = ("by_length", "by_place")

    def __init__(self) -> None:
        self.by_place = SequenceHeap(_place)
        self.by_length = SequenceHeap(_length)


class PriorityLine:
    """The waiting requests of one priority, of all tenants."""

    __slots__ = ("_accounts", "all", "shares", "tenants")

    def __init__(self, shares: TenantShares) -> None:
        self.shares = shares
        self.all = SequenceHeap(_place)
        self.tenants: dict[str, TenantLine] = {}
        self._accounts: list[tuple[float, float, str]] = []
        """Tenants by account and earliest place; an entry is current if both are."""

    def push(self, sequence: LiveSequence) -> None:
        """Add a waiting request."""
        tenant = sequence.request.tenant
        self.all.push(sequence)
        own = self.tenants.get(tenant)
        if own is None:
            own = self.tenants[tenant] = TenantLine()
        own.by_place.push(sequence)
        own.by_length.push(sequence)
        if own.by_place.first() is sequence:
            self.rank(tenant)

    def rank(self, tenant: str) -> None:
        """Follow a change of a tenant's account."""
        if tenant in self.tenants:
            heappush(self._accounts, self._rank(tenant))
            if len(self._accounts) > 64 + 4 * len(self.tenants):
                self._accounts = sorted(map(self._rank, self.tenants))

    def _rank(self, tenant: str) -> tuple[float, float, str]:
        first = self.tenants[tenant].by_place.first()
        assert first is not None
        return self.shares.of(tenant), first.place_s, tenant

    def remove(self, sequence: LiveSequence) -> None:
        """Remove a request that waits here."""
        key, tenant = sequence.request.key, sequence.request.tenant
        own = self.tenants[tenant]
        del self.all.live[key], own.by_place.live[key], own.by_length.live[key]
        if not own.by_place.live:
            del self.tenants[tenant]

    def least_served(self) -> tuple[float, TenantLine]:
        """Return the account and the requests of the tenant that received the least.

        At least one request must wait. An entry whose account has grown since is replaced by the
        present one; a tenant whose account shrank has been ranked again.
        """
        accounts = self._accounts
        while True:
            recorded = accounts[0]
            own = self.tenants.get(recorded[2])
            if own is None:
                heappop(accounts)
                continue
            current = self._rank(recorded[2])
            if current <= recorded:
                return current[0], own
            heapreplace(accounts, current)
