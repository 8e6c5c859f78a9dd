"""Value types of routes: one service each, from its own port to its warm replicas."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """A warm replica that is not terminating."""

    address: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestClass:
    """The settings of one request class."""

    name: str
    priority: int | None
    """Priority sent to the replicas; None: the request's own."""
    deadline_s: float | None
    """Deadline of requests that name none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantLimit:
    """Limits per tenant."""

    header: str
    rate_rps: int | None = None
    burst: int = 0
    """Burst size of the rate limit."""
    in_flight_percent: int | None = None
    """Share of the service's in-flight limit; None: half."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteKeys:
    """A JSON Web Key Set that a Service of the route's namespace serves."""

    service: str
    port: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTokens:
    """JSON Web Tokens of clients."""

    issuer: str
    audiences: tuple[str, ...]
    """Empty: any."""
    tenant_claim: str
    keys: str | RemoteKeys
    """A JSON Web Key Set, or where it is."""
    optional: bool = False
    """Whether requests without a token are accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hedge:
    """A second attempt while the first continues."""

    after_s: float
    budget_percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One service: its port, limits on its requests, and how they are forwarded."""

    namespace: str
    name: str
    port: int
    """The service's own port on every gateway, so that any host name works."""
    timeout_s: float
    """Deadline of a request that names none."""
    per_try_timeout_s: float | None
    """Timeout after which an attempt counts as failed and is retried on another replica."""
    max_body_bytes: int
    slow_start_s: float | None
    """Time in which a new replica ramps up to its full share."""
    grpc_port: int | None
    """The replicas' gRPC port; None without gRPC."""
    max_upgrades: int = 0
    """Upgraded connections (WebSocket) at a time; 0: upgrades are refused."""
    hedge: Hedge | None = None
    classes: tuple[RequestClass, ...] = ()
    tenants: TenantLimit | None = None
    trusted_cidrs: tuple[str, ...] = ()
    """Networks whose requests keep the headers of class, priority and tenant."""
    tokens: ClientTokens | None = None
    split: tuple[tuple[str, int], ...] = ()
    """Other routes by their keys, with their percent of the requests."""
    models: tuple[tuple[str, str], ...] = ()
    """Models of other services, with the keys of their routes."""

    @property
    def key(self) -> str:
        """The route's name in Envoy: `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def grpc_key(self) -> str:
        """The name of the service's gRPC cluster."""
        return f"{self.key}/grpc"

    @property
    def upgrade_key(self) -> str:
        """The name of the cluster whose bound counts the service's upgraded connections."""
        return f"{self.key}/upgrades"

    @property
    def leads_to(self) -> frozenset[str]:
        """The keys of the routes, and of their gRPC clusters, whose replicas answer requests."""
        own = {self.key} if self.grpc_port is None else {self.key, self.grpc_key}
        others = {key for key, _ in self.split} | {key for _, key in self.models}
        return frozenset(own | others)


def is_kept(name: str, kept: Collection[str]) -> bool:
    """Return whether the name of a route, or of a part of it, is of a kept namespace or key."""
    namespace, _, rest = name.partition("/")
    return namespace in kept or f"{namespace}/{rest.partition('/')[0]}" in kept
