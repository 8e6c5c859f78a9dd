"""Hands a service's connections over between replicas and gateways: the next write. Pure.

In Gateway mode the slice points to the gateway before the Service releases the replicas; back in
Service mode, or where the gateways are being removed, the Service has its replicas before the slice
releases the gateway, which listens for a while longer. So a connection is accepted at every moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

RETIRED_AFTER_S = 15.0
"""Time that kube-proxy and connections under way have after a slice was emptied."""


class ServiceTarget(StrEnum):
    """Destination of the Service of a name."""

    GATEWAY = "Gateway"
    REPLICAS = "Replicas"
    LEFT = "Left"
    """The selector as the reconciler writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """Writes to make, in this order."""

    slice_first: tuple[str, ...] | None
    """Addresses in the slice, before the Service is written; None: as it is."""
    service: ServiceTarget
    slice_after: tuple[str, ...] | None
    """The same after it."""


def step(
    *,
    routed: bool,
    gateways: Sequence[str],
    current: Sequence[str],
    accepts: bool,
    replicas_known: bool,
) -> Next:
    """Return the next step for a service whose slice has the addresses `current`.

    `gateways` are those that listen for it and stay, best first; `accepts` says whether one of
    `current` accepts connections, also while it is being removed; `replicas_known`, whether a slice
    of Kubernetes' own has a ready replica.
    """
    if routed and gateways:
        return Next(slice_first=(gateways[0],), service=ServiceTarget.GATEWAY, slice_after=None)
    emptied = () if current and (replicas_known or not accepts) else None
    to = ServiceTarget.REPLICAS if routed else ServiceTarget.LEFT
    return Next(slice_first=None, service=to, slice_after=emptied)
