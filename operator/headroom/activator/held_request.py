"""Held requests of a service, their bounds, and the reasons for a refusal. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headroom.gateway.values import Endpoint

HEAD_BYTES = 64 << 10
"""Maximum size of a request's head; gateways accept no larger ones."""


class RefusalReason(StrEnum):
    """Reason for the refusal of a request; a label of the metrics."""

    TOO_MANY = "TooMany"
    TOO_LARGE = "TooLarge"
    TOO_LATE = "TooLate"
    EXPIRED = "Expired"
    LEAVING = "Leaving"
    UNKNOWN = "Unknown"
    MALFORMED = "Malformed"
    FAILED = "Failed"
    IDLE = "Idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An error answer of the activator itself."""

    status: int
    why: RefusalReason
    message: str
    retry_after_s: int | None = None
    """Time when a replica is expected to be warm, in whole seconds, at least 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Upper bounds on held requests; one namespace may use as much of a bound as is still free."""

    requests: int = 4096
    requests_per_service: int = 2048
    body_bytes: int = 128 << 20
    """Bytes of bodies, and `FORWARD_BYTES` for each request that is being forwarded."""
    connections: int = 5120
    """Open connections; each is a request, is to become one, or has several calls of gRPC."""
    head_bytes: int = 16 << 20
    """Bytes of the heads of requests that are not held yet."""
    longest_s: float = 900.0
    """Maximum hold of a request, whatever its deadline."""


@dataclass(slots=True, eq=False)
class HeldRequest:
    """One held request."""

    key: str
    number: int
    """Sequence number in order of arrival."""
    arrived_s: float
    until_s: float
    """Time when the request is refused at the latest."""
    size: int = 0
    not_before_s: float = 0.0
    at: Endpoint | None = None
    """The replica that it was dispatched to."""
    refused_by: frozenset[Endpoint] = frozenset()
    refusal: Refusal | None = None
    """Reason why it was refused, perhaps while its body was still arriving."""


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Requests to dispatch and requests to refuse now."""

    given: tuple[tuple[HeldRequest, Endpoint], ...] = ()
    refused: tuple[tuple[HeldRequest, Refusal], ...] = ()


def namespace_of(key: str) -> str:
    """Return the namespace of a service's key, the owner of a share of the bounds."""
    return key.partition("/")[0]
