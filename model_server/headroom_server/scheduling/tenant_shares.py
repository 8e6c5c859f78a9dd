"""Accounts the work that each tenant received: the tenant with the least is served next. Pure.

Start-time fair queueing (Goyal 1996). A tenant that comes back enters at the level of the one
served last: idle time earns no credit. The level also rises with each round of tenants that came at
it: else a client that invents a tenant for each request would keep it where it is, and no tenant
that was served before would be served again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection

KEPT_TENANTS = 1024
"""Accounts at or below the common level are removed once there are more than this."""


RECENT = 256
"""Requests by which the shares are known that tenants receive."""


class Newcomers:
    """Tenants that came at the common level and were served, of the present round."""

    __slots__ = ("_count", "_waited", "_work")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin a round."""
        self._count, self._waited, self._work = 0, 2, 0.0

    def served(self, work: float, tenants: int) -> float:
        """Count one, of so many tenants that wait; return by how much the level rises.

        After as many as wait, and one more, each that waited when the round began has had its turn.
        """
        self._count += 1
        self._work += work
        self._waited = max(self._waited, tenants)
        if self._count <= self._waited:
            return 0.0
        mean = self._work / self._count
        self.begin()
        return mean


class TenantShares:
    """The accounts of all tenants."""

    __slots__ = ("_accounts", "_counts", "_newcomers", "_served", "level")

    def __init__(self) -> None:
        self._accounts: dict[str, float] = {}
        self.level = 0.0
        """The account of the tenant served last, when it was served."""
        self._newcomers = Newcomers()
        self._served: deque[str] = deque()
        """The tenants of the last requests that were served."""
        self._counts = Counter[str]()

    def __len__(self) -> int:
        """Return the number of accounts kept."""
        return len(self._accounts)

    def of(self, tenant: str) -> float:
        """Return a tenant's account."""
        return max(self.level, self._accounts.get(tenant, 0.0))

    def serve(self, tenant: str, work: float, tenants: int) -> None:
        """Charge a request that starts; this many tenants waited, with this one."""
        account = self.of(tenant)
        self._accounts[tenant] = account + work
        if account > self.level:
            self.level = account
            self._newcomers.begin()
        else:
            self.level += self._newcomers.served(work, tenants)
        self._served.append(tenant)
        self._counts[tenant] += 1
        if len(self._served) > RECENT:
            oldest = self._served.popleft()
            self._counts[oldest] -= 1
            if not self._counts[oldest]:
                del self._counts[oldest]

    def others(self, tenant: str) -> float:
        """Return how many requests of others are served for each of a tenant that waits.

        A tenant that waits gets its equal share at least.
        """
        own, tenants = self._counts[tenant], len(self._counts)
        equal = max(0, tenants - (own > 0))
        return min(equal, (len(self._served) - own) / own) if own else equal

    def correct(self, tenant: str, work: float) -> None:
        """Add work that was not charged, or return some that was not done."""
        account = self._accounts.get(tenant)
        if account is not None:
            self._accounts[tenant] = account + work

    def forget(self, waiting: Collection[str]) -> None:
        """Bound the accounts: one at the common level says nothing."""
        if len(self._accounts) > KEPT_TENANTS + 2 * len(waiting):
            self._accounts = {
                tenant: account
                for tenant, account in self._accounts.items()
                if account > self.level or tenant in waiting
            }
