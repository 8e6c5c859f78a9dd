"""Assign each routed service a port of the gateways. Pure.

A service's port is where its UID's digest points, or the next free one. The service keeps it: its
slice records it, and an operator that restarts reads it from there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable
from dataclasses import dataclass

from headroom.controller.ports import Manifest
from headroom.resources.endpoint_slice import SERVICE_NAME_LABEL

FIRST_PORT, PORTS = 20_000, 10_000


def choose(uid: str, taken: Container[int]) -> int | None:
    """Choose a port; None where all are taken."""
    begin = int.from_bytes(hashlib.sha256(uid.encode()).digest()[:4]) % PORTS
    for step in range(PORTS):
        port = FIRST_PORT + (begin + step) % PORTS
        if port not in taken:
            return port
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What a slice records of its service."""

    port: int
    addresses: tuple[str, ...]
    service_name: str
    """The Service that it belongs to."""


def read(slices: Iterable[Manifest]) -> dict[str, Recorded]:
    """Return what each service's slice records; of two with the same port, the first keeps it."""
    found: dict[str, Recorded] = {}
    for one in slices:
        metadata = one["metadata"]
        owner = next((ref["uid"] for ref in metadata.get("ownerReferences") or ()), None)
        port = next((entry.get("port") for entry in one.get("ports") or ()), None)
        taken = {each.port for each in found.values()}
        if owner is None or not isinstance(port, int) or port in taken:
            continue
        if FIRST_PORT <= port < FIRST_PORT + PORTS and one.get("endpoints"):
            found[owner] = Recorded(
                port=port,
                addresses=tuple(a for entry in one["endpoints"] for a in entry["addresses"]),
                service_name=(metadata.get("labels") or {}).get(SERVICE_NAME_LABEL, ""),
            )
    return found


def preference(uid: str, gateway: str) -> bytes:
    """Rank a gateway for a service: the lowest is its own, and another only while that is away."""
    return hashlib.sha256(f"{uid} {gateway}".encode()).digest()
