"""Messages between operator and activators: services one way, reports the other. Pure.

Both sides of the wire format are defined here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from headroom.gateway.values import Endpoint, is_kept

UNKNOWN_IN_FLIGHT = 32
"""In-flight limit per replica while the cost is unknown."""
GONE_AFTER_S = 8.0
"""An activator without a report for this long counts as gone."""
ASK_WITHIN_S = 5.0
"""Duration of the long poll; activators report at least this often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One service as an activator knows it."""

    key: str
    """`namespace/name`."""
    port: int
    """The service's port on every gateway and every activator."""
    timeout_s: float
    """Deadline of a request that names none."""
    max_body_bytes: int
    cold_start_s: float | None
    """Measured p90 from node assignment to readiness; None before the first start."""
    in_flight: int
    """In-flight limit per replica."""
    replicas: tuple[Endpoint, ...]
    """Warm replicas that are not terminating."""
    grpc_port: int | None = None
    """The replicas' gRPC port; None without gRPC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The report of one activator."""

    address: str
    """Address at which gateways reach it."""
    version: str = ""
    """Version of the services it has; empty before the first."""
    listening: frozenset[int] = frozenset()
    """Ports at which it accepts requests."""
    held: tuple[tuple[str, int], ...] = ()
    """Held requests by service key, including those being answered; a service with only a recent
    refused request counts 1."""
    arrived: tuple[tuple[str, int], ...] = ()
    """Requests that arrived for each service since the process started, including refused ones."""
    leaving: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The services that an operator sends to an activator."""

    version: str
    services: tuple[Served, ...]
    kept: frozenset[str] = frozenset()
    """Namespaces and keys of services that are not known now: they stay as they are."""

    def after(self, before: Iterable[Served]) -> tuple[Served, ...]:
        """Return the services of an activator that had those `before`."""
        keys, ports = ({one.key for one in self.services}, {one.port for one in self.services})
        stay = (one for one in before if is_kept(one.key, self.kept))
        return (
            *self.services,
            *(one for one in stay if one.key not in keys and one.port not in ports),
        )


def services_body(services: Iterable[Served], kept: Iterable[str] = ()) -> tuple[str, bytes]:
    """Encode the services; return (version, body), the version being a digest."""
    content = json.dumps([asdict(one) for one in services], separators=(",", ":"))
    if names := sorted(kept):
        content += f',"kept":{json.dumps(names)}'
    version = hashlib.sha256(content.encode()).hexdigest()[:16]
    return version, f'{{"version":"{version}","services":{content}}}'.encode()


def read(body: bytes) -> Services:
    """Decode the services; raise ValueError."""
    try:
        said = json.loads(body)
        services = tuple(
            Served(**one | {"replicas": tuple(Endpoint(**host) for host in one["replicas"])})
            for one in said["services"]
        )
        kept = frozenset(str(one) for one in said.get("kept", ()))
        return Services(version=str(said["version"]), services=services, kept=kept)
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"the message must have version and services: {error!r}") from error


def report_body(report: Report) -> bytes:
    """Encode a report."""
    body = asdict(report) | {"listening": sorted(report.listening), "held": dict(report.held)}
    body["arrived"] = dict(report.arrived)
    return json.dumps(body, separators=(",", ":")).encode()


def read_report(body: bytes) -> Report:
    """Decode a report; raise ValueError."""
    said = json.loads(body)
    if not isinstance(said, dict):
        raise ValueError(f"a report must be an object; got {said!r:.80}")
    address, listening = said.get("address"), said.get("listening", [])
    if not isinstance(address, str) or not address:
        raise ValueError(f"address must be a string that is not empty; got {address!r:.80}")
    if not isinstance(listening, list) or not all(type(port) is int for port in listening):
        raise ValueError(f"listening must be a list of ports; got {listening!r:.80}")
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
        raise ValueError(f"{name} must have a count for each service; got {counts!r:.80}")
    return tuple(counts.items())
