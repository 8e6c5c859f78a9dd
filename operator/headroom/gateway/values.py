"""What a gateway routes: one service each, from a port of its own to its warm replicas."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """A replica that is warm and not leaving."""

    address: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestClass:
    """Requests that name a class."""

    name: str
    priority: int | None
    """Told to the replicas; None: what the request says."""
    deadline_s: float | None
    """Where the request names none of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantLimit:
    """What each tenant may ask for."""

    header: str
    rate_rps: int | None = None
    burst: int = 0
    """At once after a pause, where there is a rate."""
    in_flight_percent: int | None = None
    """Of what the service may have in flight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hedge:
    """A second try while the first goes on."""

    after_s: float
    budget_percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One service: where its requests come in, what they may be, and how they are passed on."""

    namespace: str
    name: str
    port: int
    """On every gateway; the service's alone, so that whatever a client calls its host is right."""
    timeout_s: float
    """The longest that a request may take where it names no deadline of its own."""
    per_try_timeout_s: float | None
    """After which a try counts as failed, and is made once more on another replica."""
    max_body_bytes: int
    slow_start_s: float | None
    """Over which a fresh replica gets up to its full share."""
    grpc_port: int | None
    """Of the replicas; None where they take no gRPC."""
    hedge: Hedge | None = None
    classes: tuple[RequestClass, ...] = ()
    tenants: TenantLimit | None = None
    split: tuple[tuple[str, int], ...] = ()
    """Other routes by their keys, with their percent of the requests."""
    models: tuple[tuple[str, str], ...] = ()
    """Models that are served elsewhere, with the keys of their routes."""

    @property
    def key(self) -> str:
        """Name the route in Envoy: `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def grpc_key(self) -> str:
        """Name what carries the same service's gRPC."""
        return f"{self.key}/grpc"
