"""The waiting requests in order of service. Pure.

The next request is of the priority that has the earliest place (`service_order`); within a
priority, of the tenant that received the least (`tenant_shares`); within a tenant, the one with the
earliest place. Of tenants that received the same, the one whose request has the earliest place goes
first: by name, a client that chooses its tenant's name would always be first.

A more urgent request goes first if its tenant received less than the tenant of that priority: a
request that grew old behind others of its own tenant must not pass it.
"""

from __future__ import annotations

from collections.abc import Iterator

from headroom_server.generation.scheduling.sequences import LiveSequence
from headroom_server.generation.scheduling.waiting.priority_line import PriorityLine, TenantLine
from headroom_server.scheduling.tenant_shares import TenantShares


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
        self._priorities: dict[int, PriorityLine] = {}

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
            priority = self._priorities[level] = PriorityLine(self.shares)
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

    def _next_tenant(self) -> TenantLine | None:
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
        """Follow a change of a tenant's account, which may have shrunk."""
        for priority in self._priorities.values():
            priority.rank(tenant)
