"""Assign each routed service a port of the gateways. Pure.

A service's port is where its UID's digest points, or the next free one. The service keeps it: its
slice records it, and an operator that restarts reads it from there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable

from headroom.controller.ports import Manifest

FIRST_PORT, PORTS = 20_000, 10_000


def choose(uid: str, taken: Container[int]) -> int | None:
    """Choose a port; None where all are taken."""
    begin = int.from_bytes(hashlib.sha256(uid.encode()).digest()[:4]) % PORTS
    for step in range(PORTS):
        port = FIRST_PORT + (begin + step) % PORTS
        if port not in taken:
            return port
    return None


def read(slices: Iterable[Manifest]) -> dict[str, int]:
    """Return each service's port from the slices; of two with the same port, the first keeps it."""
    found: dict[str, int] = {}
    for one in slices:
        owner = next((ref["uid"] for ref in one["metadata"].get("ownerReferences") or ()), None)
        port = next((entry.get("port") for entry in one.get("ports") or ()), None)
        if owner is None or not isinstance(port, int) or port in found.values():
            continue
        if FIRST_PORT <= port < FIRST_PORT + PORTS and one.get("endpoints"):
            found[owner] = port
    return found


def preference(uid: str, gateway: str) -> bytes:
    """Rank a gateway for a service: the lowest is its own, and another only while that is away."""
    return hashlib.sha256(f"{uid} {gateway}".encode()).digest()
