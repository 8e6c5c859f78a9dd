"""PURE. The waiting requests in order of service.

A request's place is a point in time: its arrival, plus a second per level of priority, plus
`OVERTAKING` times the time of its prompt. So a short prompt overtakes the long ones that came
shortly before it, and everything is served eventually: what arrives later has a later place.

The next request is of the priority that has the earliest place; within a priority, of the tenant
that received the least (`tenant_shares`), of several the one whose request has the earliest place:
by their names, a client that chooses names would always be first. Within a tenant, the earliest
place. A more urgent
request of a tenant that received less goes first: what grew old behind its own tenant's requests
must not pass it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush, heapreplace

from headroom_server.generation.scheduling.sequences import LiveSequence
from headroom_server.generation.values import GenerationRequest
from headroom_server.scheduling.tenant_shares import TenantShares

AGEING_S = 1.0
"""Seconds of waiting that are worth one level of priority."""
OVERTAKING = 10.0


def place_s(request: GenerationRequest, prompt_s: float) -> float:
    """Return a request's position in the order of service."""
    return request.arrived_s + AGEING_S * request.priority + OVERTAKING * prompt_s


class _Heap:
    """Sequences by a rank; the keys of those that left are skipped when they come to the top."""

    __slots__ = ("_entries", "_rank", "live")

    def __init__(self, rank: Callable[[LiveSequence], float]) -> None:
        self._entries: list[tuple[float, int]] = []
        self._rank = rank
        self.live: dict[int, LiveSequence] = {}

    def push(self, sequence: LiveSequence) -> None:
        key, rank = sequence.request.key, self._rank
        self.live[key] = sequence
        heappush(self._entries, (rank(sequence), key))
        if len(self._entries) > 64 + 2 * len(self.live):
            self._entries = sorted((rank(s), k) for k, s in self.live.items())

    def first(self) -> LiveSequence | None:
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


class _Tenant:
    """A tenant's waiting requests of one priority."""

    __slots__ = ("by_length", "by_place")

    def __init__(self) -> None:
        self.by_place = _Heap(_place)
        self.by_length = _Heap(_length)


class _Priority:
    """The waiting requests of one priority."""

    __slots__ = ("_accounts", "all", "shares", "tenants")

    def __init__(self, shares: TenantShares) -> None:
        self.shares = shares
        self.all = _Heap(_place)
        self.tenants: dict[str, _Tenant] = {}
        self._accounts: list[tuple[float, float, str]] = []
        """Tenants by account and earliest place; an entry is current if both are."""

    def push(self, sequence: LiveSequence) -> None:
        tenant = sequence.request.tenant
        self.all.push(sequence)
        own = self.tenants.get(tenant)
        if own is None:
            own = self.tenants[tenant] = _Tenant()
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
        key, tenant = sequence.request.key, sequence.request.tenant
        own = self.tenants[tenant]
        del self.all.live[key], own.by_place.live[key], own.by_length.live[key]
        if not own.by_place.live:
            del self.tenants[tenant]

    def least_served(self) -> tuple[float, _Tenant]:
        """Return the account and the requests of the tenant that received the least; one waits."""
        accounts = self._accounts
        while True:
            said = accounts[0]
            own = self.tenants.get(said[2])
            if own is not None:
                now = self._rank(said[2])
                if now <= said:
                    return now[0], own
                heapreplace(accounts, now)
            else:
                heappop(accounts)


class WaitingLine:
    """Waiting requests of one class: interactive, or batch."""

    __slots__ = ("_counts", "_priorities", "by_tenant", "count", "shares", "tokens")

    def __init__(self, shares: TenantShares) -> None:
        self.shares = shares
        self.count = 0
        self.tokens = 0
        """Tokens to compute before the waiting requests' next ones are sampled."""
        self.by_tenant: dict[str, int] = {}
        """Waiting tokens per tenant."""
        self._counts: dict[str, int] = {}
        """Waiting requests per tenant."""
        self._priorities: dict[int, _Priority] = {}

    def tokens_of(self, tenant: str) -> int:
        """Return a tenant's waiting tokens."""
        return self.by_tenant.get(tenant, 0)

    def requests_of(self, tenant: str) -> int:
        """Return how many requests of a tenant wait."""
        return self._counts.get(tenant, 0)

    def __iter__(self) -> Iterator[LiveSequence]:
        """Return the waiting sequences, unordered."""
        for priority in self._priorities.values():
            yield from priority.all.live.values()

    def push(self, sequence: LiveSequence) -> None:
        """Add a sequence."""
        level, tenant = sequence.request.priority, sequence.request.tenant
        priority = self._priorities.get(level)
        if priority is None:
            priority = self._priorities[level] = _Priority(self.shares)
        priority.push(sequence)
        tokens = len(sequence.tokens)
        self.count += 1
        self.tokens += tokens
        self.by_tenant[tenant] = self.by_tenant.get(tenant, 0) + tokens
        self._counts[tenant] = self._counts.get(tenant, 0) + 1

    def remove(self, sequence: LiveSequence) -> None:
        """Remove a waiting sequence, to start or to end it."""
        tenant = sequence.request.tenant
        self._priorities[sequence.request.priority].remove(sequence)
        tokens = len(sequence.tokens)
        self.count -= 1
        self.tokens -= tokens
        self.by_tenant[tenant] -= tokens
        self._counts[tenant] -= 1
        if not self._counts[tenant]:
            del self.by_tenant[tenant], self._counts[tenant]

    def first(self) -> LiveSequence | None:
        """Return the sequence to be started next."""
        tenant = self._next_tenant()
        return None if tenant is None else tenant.by_place.first()

    def shortest(self) -> LiveSequence | None:
        """Return the shortest prompt of the tenant that is next: for time that `first` leaves."""
        tenant = self._next_tenant()
        return None if tenant is None else tenant.by_length.first()

    def _next_tenant(self) -> _Tenant | None:
        if not self.count:
            return None
        heads = [
            (head.place_s, level)
            for level, priority in self._priorities.items()
            if (head := priority.all.first()) is not None
        ]
        _, first = min(heads)
        received, tenant = self._priorities[first].least_served()
        for level in sorted(level for _, level in heads if level < first):
            less, other = self._priorities[level].least_served()
            if less < received:
                received, tenant = less, other
        return tenant

    def account_changed(self, tenant: str) -> None:
        """Follow a change of a tenant's account."""
        for priority in self._priorities.values():
            priority.rank(tenant)
