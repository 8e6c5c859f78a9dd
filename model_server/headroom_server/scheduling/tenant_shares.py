"""PURE. What each tenant received, as work: the tenant with the least is served next.

Start-time fair queueing (Goyal 1996). A tenant that comes back enters at the level of the one
served last: idle time earns no credit.
"""

from __future__ import annotations

from collections.abc import Collection

KEPT_TENANTS = 1024
"""Accounts at or below the common level are removed once there are more than this."""


class TenantShares:
    """The accounts of all tenants."""

    __slots__ = ("_accounts", "level")

    def __init__(self) -> None:
        self._accounts: dict[str, float] = {}
        self.level = 0.0
        """The account of the tenant served last, when it was served."""

    def __len__(self) -> int:
        """Return the number of accounts kept."""
        return len(self._accounts)

    def of(self, tenant: str) -> float:
        """Return a tenant's account."""
        return max(self.level, self._accounts.get(tenant, 0.0))

    def serve(self, tenant: str, work: float) -> None:
        """Charge a request that starts."""
        account = self.of(tenant)
        self.level = max(self.level, account)
        self._accounts[tenant] = account + work

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
