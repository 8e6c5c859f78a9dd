"""The signals of the last decision in status, and the gateways' counts."""

from __future__ import annotations

from headroom.api.service_status.status_types import Word
from headroom.api.values import Value


class GatewayStatus(Value):
    """Requests counted at the gateways. Unknown values are omitted."""

    arrivals_per_second: float | None = None
    """Arrival rate."""
    missed_per_second: float | None = None
    """Rejected, failed, expired or cancelled requests, without those beyond a tenant's limits."""
    in_flight: float | None = None
    """Requests in flight."""
    freshness: Word
    """Fresh, Stale or Missing: of the gateway with the oldest metrics."""


class SignalsStatus(Value):
    """Signal values used for the last decision. Missing signals are omitted."""

    arrivals_per_second: float | None = None
    """Arrival rate."""
    waiting: float | None = None
    """Queued requests of all replicas, without those in a batch."""
    latency: Word | None = None
    """Latency at the SLO percentile in the stable window; `unbounded` where too many requests
    missed."""
    latency_source: Word | None = None
    """Source of the latency: Gateway (client side) or Replicas."""
    gateway: GatewayStatus | None = None
    """Counts of the gateways, where routing.mode is Gateway."""
    time_to_first_token: Word | None = None
    """Time to first token at its SLO percentile in the last minute, where it has an SLO."""
    time_per_output_token: Word | None = None
    """Time per output token at its SLO percentile in the last minute, where it has an SLO."""
    utilization: float | None = None
    """Arrival rate divided by the full-batch throughput of the ready replicas."""
    freshness: Word
    """Fresh, Stale or Missing: the worst of the signals that removals depend on."""
