"""The demand in status: what clients want to send, as far as counts show it."""

from __future__ import annotations

from headroom.api.service_status.conditions import shortened
from headroom.api.service_status.status_types import Text, Word, rounded
from headroom.api.values import Value
from headroom.scaling.values.decision import Decision
from headroom.scaling.values.demand import DemandKnown

_SIGNS = {DemandKnown.AT_LEAST: ">=", DemandKnown.INCLUDES_RETRIES: "<="}
_TEXTS = {DemandKnown.AT_LEAST: "at least ", DemandKnown.INCLUDES_RETRIES: "at most "}


class DemandStatus(Value):
    """Requests that clients want to send."""

    known: Word
    """Exact, AtLeast (clients wait for saturated replicas, so they send less than they want) or
    IncludesRetries (a part of the arrivals are retries)."""
    rate: Word
    """The rate as text: `160/s`; `>=160/s` where it is a lower bound, `<=80/s` where it is an upper
    bound."""
    requests_per_second: float
    """The rate that the decision uses."""
    at_most_per_second: float | None = None
    """Upper bound of hidden demand: requests in flight divided by the latency target."""
    message: Text | None = None
    """The evidence; omitted where the rate is exact."""

    @property
    def sentence(self) -> str:
        """The demand as text: `at least 160/s (the evidence); up to 533/s`."""
        number = rate_text(self.requests_per_second)
        try:
            text = _TEXTS.get(DemandKnown(self.known), "") + number
        except ValueError:  # of another version
            text = self.rate or number
        if self.message:
            text = f"{text} ({self.message})"
        if self.at_most_per_second is not None:
            text = f"{text}; up to {rate_text(self.at_most_per_second)}"
        return text


def demand_status(decision: Decision) -> DemandStatus | None:
    """Return what a decision knows of the demand; None while no rate is known."""
    demand = decision.demand
    rate_rps = demand.rate_rps
    if rate_rps is None:
        rate_rps = decision.signals.arrival_rps.value
    rate_rps = rounded(rate_rps)
    if rate_rps is None:
        return None
    return DemandStatus(
        known=demand.known,
        rate=_SIGNS.get(demand.known, "") + rate_text(rate_rps),
        requests_per_second=rate_rps,
        at_most_per_second=rounded(demand.at_most_rps),
        message=shortened(demand.detail) or None,
    )


def rate_text(rate_rps: float) -> str:
    """Format a rate with three digits, or all of the integer part: 0.25/s, 12.3/s, 1234/s."""
    return f"{rate_rps:.3g}/s" if rate_rps < 999.5 else f"{rate_rps:.0f}/s"
