"""The SLO report in status."""

from __future__ import annotations

from headroom.api.service_status.status_types import Count
from headroom.api.values import Value


class SloStatus(Value):
    """SLO report of the last 28 days. One-minute windows without traffic do not count."""

    attainment: float | None = None
    """Share of one-minute windows that met the latency target."""
    windows_met: Count = 0
    """One-minute windows that met the latency target."""
    windows_missed: Count = 0
    """One-minute windows that missed the latency target."""
    error_budget_remaining: float
    """Remaining share of the error budget; negative when overspent."""
    burn_rate: float | None = None
    """Error budget spent in the last hour, relative to the rate that spends all of it in 28
    days."""
    late_share: float | None = None
    """Share of the last hour's requests that missed the latency target, without those that fail
    whatever the load."""
    margin: float | None = None
    """Learned factor on the replicas that carry the arrivals: above 1 where bursts made requests
    late."""

    @property
    def sentence(self) -> str:
        """The margin and its cause; empty while no request of the last hour ended."""
        if self.late_share is None or self.margin is None:
            return ""
        late = f"{100 * self.late_share:.3g}% of the last hour's requests were late"
        return f"margin {self.margin:.3g}x: {late}"
