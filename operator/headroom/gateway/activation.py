"""What activators are told: services, their warm replicas, and how long a start takes. Pure.

The operator writes it, an activator reads it; both sides of the wire stand here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from headroom.gateway.values import Endpoint

UNKNOWN_IN_FLIGHT = 32
"""Per replica, of a service whose cost is not known yet."""
GONE_AFTER_S = 8.0
"""An activator that has not been heard for so long holds nothing any more."""
ASK_WITHIN_S = 5.0
"""How long the operator holds an activator's question; so often it is heard at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One service as an activator knows it."""

    key: str
    """`namespace/name`."""
    port: int
    """Its own, on every gateway and every activator."""
    timeout_s: float
    """The longest that a request may take where it names no deadline of its own."""
    max_body_bytes: int
    cold_start_s: float | None
    """From a pod's node to its readiness, as measured (p90); None before the first."""
    in_flight: int
    """Requests that one replica is given at once."""
    replicas: tuple[Endpoint, ...]
    """Warm and not leaving."""
    grpc_port: int | None = None
    """At which replicas take gRPC; None where they take none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What an activator says of itself."""

    address: str
    """At which gateways reach it."""
    version: str = ""
    """Of what it was told last; empty: nothing yet."""
    listening: frozenset[int] = frozenset()
    """Ports of the services that it takes requests for."""
    held: tuple[tuple[str, int], ...] = ()
    """Services by key with the requests that wait there or are being answered through it; one that
    was only knocked at counts 1."""
    arrived: tuple[tuple[str, int], ...] = ()
    """All that came for each service since this process began, refused ones too."""
    leaving: bool = False


def told(services: Iterable[Served]) -> tuple[str, bytes]:
    """Write what is told, with a version that follows from it."""
    content = json.dumps([asdict(one) for one in services], separators=(",", ":"))
    version = hashlib.sha256(content.encode()).hexdigest()[:16]
    return version, f'{{"version":"{version}","services":{content}}}'.encode()


def read(body: bytes) -> tuple[str, tuple[Served, ...]]:
    """Read what is told; raise ValueError."""
    try:
        said = json.loads(body)
        services = tuple(
            Served(**one | {"replicas": tuple(Endpoint(**host) for host in one["replicas"])})
            for one in said["services"]
        )
        return str(said["version"]), services
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"what is told has version and services: {error!r}") from error


def report_body(report: Report) -> bytes:
    """Write a report."""
    body = asdict(report) | {"listening": sorted(report.listening), "held": dict(report.held)}
    body["arrived"] = dict(report.arrived)
    return json.dumps(body, separators=(",", ":")).encode()


def read_report(body: bytes) -> Report:
    """Read a report; raise ValueError."""
    said = json.loads(body)
    if not isinstance(said, dict):
        raise ValueError(f"a report is an object, received {said!r:.80}")
    address, listening = said.get("address"), said.get("listening", [])
    if not isinstance(address, str) or not address:
        raise ValueError(f"a report has an address, received {address!r:.80}")
    if not isinstance(listening, list) or not all(type(port) is int for port in listening):
        raise ValueError(f"listening has ports, received {listening!r:.80}")
    return Report(
        address=address,
        version=str(said.get("version", "")),
        listening=frozenset(listening),
        held=_counts(said, "held"),
        arrived=_counts(said, "arrived"),
        leaving=said.get("leaving") is True,
    )


def _counts(said: dict[str, Any], name: str) -> tuple[tuple[str, int], ...]:
    counts = said.get(name, {})
    if not isinstance(counts, dict) or not all(type(n) is int and n >= 0 for n in counts.values()):
        raise ValueError(f"{name} has a count for each service, received {counts!r:.80}")
    return tuple(counts.items())
