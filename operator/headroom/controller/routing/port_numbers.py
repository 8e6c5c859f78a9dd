"""Assign each routed service a port of the gateways. Pure.

A service's port is where its UID's digest points, or the next free one. The service keeps it: its
slice records it, and an operator that restarts reads it from there. Users who may write slices in
a namespace can write any port into them, so a record counts only for the service that owns the
slice, and of two records of a port the one nearer to where its UID points holds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from headroom.controller.ports import Manifest
from headroom.resources.endpoint_slice import SERVICE_NAME_LABEL
from headroom.resources.names import is_owner

FIRST_PORT, PORTS = 20_000, 10_000
PER_NAMESPACE = 1_000
"""Ports that the services of one namespace may have, unless a setting says otherwise."""


def choose(uid: str, taken: Container[int]) -> int | None:
    """Choose a port; None where all are taken."""
    begin = _begin(uid)
    for step in range(PORTS):
        port = FIRST_PORT + (begin + step) % PORTS
        if port not in taken:
            return port
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Record of a service in its slice."""

    port: int
    addresses: tuple[str, ...]
    service_name: str
    """The Service that it belongs to."""


def read(
    slices: Iterable[Manifest], services: Mapping[str, Manifest], taken: Iterable[int] = ()
) -> dict[str, Recorded]:
    """Return the ports that slices record, by the service's UID; `services` are those that exist.

    Of two records of one port that are equally near, the older service's holds; a port that is
    `taken` has its service already.
    """
    candidates = []
    for one in slices:
        owner, port = _owner(one, services), _port(one)
        if owner is not None and port is not None:
            created = str(services[owner]["metadata"].get("creationTimestamp", ""))
            steps = (port - FIRST_PORT - _begin(owner)) % PORTS
            candidates.append((steps, created, owner, port, one))
    found: dict[str, Recorded] = {}
    taken = set(taken)
    for _, _, owner, port, one in sorted(candidates, key=lambda each: each[:3]):
        if owner in found or port in taken:
            continue
        taken.add(port)
        found[owner] = Recorded(
            port=port,
            addresses=tuple(a for entry in one["endpoints"] for a in entry["addresses"]),
            service_name=(one["metadata"].get("labels") or {}).get(SERVICE_NAME_LABEL, ""),
        )
    return found


def unverified(slices: Iterable[Manifest], most: int) -> dict[int, str]:
    """Return the ports that the slices of one namespace record, with the keys of their services.

    Whether the services exist is unknown, so these ports are only kept free: at most as many as the
    services of a namespace may have.
    """
    found: dict[int, str] = {}
    for one in slices:
        metadata, port = one["metadata"], _port(one)
        for owner in metadata.get("ownerReferences") or ():
            if port is not None and len(found) < most:
                found[port] = f"{metadata['namespace']}/{owner.get('name', '')}"
    return found


def _port(one: Manifest) -> int | None:
    """Return the port that a slice records; None without an endpoint."""
    port = next((entry.get("port") for entry in one.get("ports") or ()), None)
    if not isinstance(port, int) or not one.get("endpoints"):
        return None
    return port if FIRST_PORT <= port < FIRST_PORT + PORTS else None


def _owner(one: Manifest, services: Mapping[str, Manifest]) -> str | None:
    """Return the UID of the service that owns the slice, as names, namespace and UID agree."""
    for reference in one["metadata"].get("ownerReferences") or ():
        service = services.get(reference.get("uid", ""))
        if service is not None and is_owner(service["metadata"], one["metadata"], reference):
            return str(reference["uid"])
    return None


def _begin(uid: str) -> int:
    return int.from_bytes(hashlib.sha256(uid.encode()).digest()[:4]) % PORTS


def preference(uid: str, gateway: str) -> bytes:
    """Rank a gateway for a service: the lowest is its own; the next is used while that is down."""
    return hashlib.sha256(f"{uid} {gateway}".encode()).digest()
