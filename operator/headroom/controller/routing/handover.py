"""Where a service leads now, and what has to be written for it. Pure.

In Gateway mode the slice leads to the gateway before the Service lets go of the replicas; back in
Service mode the Service has its replicas before the slice lets go of the gateway; and the gateway
goes on listening for a while after that. So at each moment a connection finds somebody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

RETIRED_AFTER_S = 15.0
"""Time that kube-proxy and connections under way have after a slice was emptied."""


class ServiceTarget(StrEnum):
    """Where the Service of a name leads."""

    GATEWAY = "Gateway"
    REPLICAS = "Replicas"
    LEFT = "Left"
    """As the reconciler writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What is to be written, in this order."""

    slice_first: tuple[str, ...] | None
    """Addresses in the slice, before the Service is written; None: as it is."""
    service: ServiceTarget
    slice_after: tuple[str, ...] | None
    """The same after it."""


def step(
    *, routed: bool, gateways: Sequence[str], standing: Sequence[str], replicas_known: bool
) -> Next:
    """Say what comes next for a service whose slice leads to `standing`.

    `gateways` are those that listen for it, best first; `replicas_known` says whether a slice of
    Kubernetes' own leads to a ready replica.
    """
    if routed and gateways:
        return Next(slice_first=(gateways[0],), service=ServiceTarget.GATEWAY, slice_after=None)
    if routed:
        return Next(slice_first=None, service=ServiceTarget.REPLICAS, slice_after=())
    emptied = () if replicas_known or not gateways else None
    return Next(
        slice_first=None, service=ServiceTarget.LEFT, slice_after=emptied if standing else None
    )
