"""Knowledge about the demand of clients, and obstacles that more replicas cannot change."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DemandKnown(StrEnum):
    """Relation of the counted arrival rate to the demand of clients."""

    EXACT = "Exact"
    """Every request that clients want to send is counted, once."""
    AT_LEAST = "AtLeast"
    """Replicas are saturated and clients wait for them: the count is a lower bound."""
    INCLUDES_RETRIES = "IncludesRetries"
    """Many requests miss, and part of the arrivals are retries: the count is an upper
    bound."""


class Obstacle(StrEnum):
    """Cause of latency above its target that more replicas cannot change."""

    CONNECTIONS_PINNED = "ConnectionsPinned"
    """Connections stay with saturated replicas while other ready ones get hardly any request."""
    DOWNSTREAM_LIMIT = "DownstreamLimit"
    """More replicas were added and together they serve no more than before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Knowledge about the requests that clients want to send."""

    known: DemandKnown = DemandKnown.EXACT
    rate_rps: float | None = None
    """The rate that the rules use; None while no rate is known."""
    at_most_rps: float | None = None
    """Upper bound of hidden demand: requests in flight over the latency target (Little 1961)."""
    detail: str = ""
    """The evidence as text; empty if the count is exact."""
