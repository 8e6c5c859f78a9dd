"""Route of a service's requests, and the requests that its activators hold. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.controller.gather.gateways.gateway_counters import ServiceTotals


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteStatus:
    """Present route of requests to a service."""

    gateways: tuple[str, ...] = ()
    """Addresses that its Service leads to; empty: to its replicas."""
    activators: int = 0
    """Activators that take its requests while no replica is warm."""
    held: int = 0
    """Requests that wait there or are being answered through it."""
    arrived: int = 0
    """Requests that arrived at activators since some moment."""
    totals: ServiceTotals | None = None
    """Counts of its requests by the gateways; None where they are not read."""
    trouble: str = ""
    """Reason why its routing could not be written; empty where it could."""
    refused: str = ""
    """Reason why it has no port of the gateways; empty where it has one or needs none."""
    left_out: str = ""
    """Reason why the gateways have no configuration of it; empty if they have one or need none."""

    @property
    def can_activate(self) -> bool:
        """Whether a request is held while there is no replica."""
        return bool(self.gateways) and self.activators > 0


NOT_ROUTED = RouteStatus()
"""The status of a service without a gateway route."""
