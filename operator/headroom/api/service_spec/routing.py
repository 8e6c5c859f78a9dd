"""`spec.routing`: how requests reach the replicas."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from headroom.api.durations import Duration
from headroom.api.service_spec.client_tokens import Jwt
from headroom.api.service_spec.traffic import (
    Cidr,
    Hedging,
    ModelRoute,
    RequestClass,
    Tenants,
    TrafficShare,
)
from headroom.api.text_forms import TextForm
from headroom.api.values import MapBy, Rule, Value, Within
from headroom.scaling.values.policy import Routing as Kind

SERVICE_PORT = 80
"""Port of the Service that clients use, unless `servicePort` says another."""


class Routing(Value):
    """Path of requests to the replicas. Changes take effect within seconds."""

    mode: Literal["Service", "Gateway"] = "Service"
    """Service: a ClusterIP Service balances connections. Gateway: a gateway sends each request to
    the replica with the fewest requests in flight, under the same name and port; without a ready
    gateway, clients connect to the replicas as with Service."""
    request_timeout: Annotated[Duration, Within("1s", "24h")] = Duration.parse("5m")
    """Maximum duration of a request in Gateway mode. A request with a deadline (x-request-timeout,
    grpc-timeout) uses that instead."""
    max_body_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] = 16 << 20
    """Maximum size of a request body in Gateway mode. A body above 8 KiB needs a Content-Length,
    and is streamed to the replica."""
    max_upgrades: Annotated[int, Field(ge=0, le=1000)] = 0
    """Maximum upgraded connections (WebSocket) at a time in Gateway mode. Each lasts for the
    request timeout at most. Default: upgrades are refused."""
    slow_start: Annotated[Duration, Within("1s", "15m")] | None = None
    """Time over which the gateway raises the load of a new replica to its full share. Default:
    immediately."""
    max_in_flight: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Maximum requests in flight per ready replica; the gateway rejects more with 429. Default:
    the full batches that the learned cost model completes within the target, at least two; of a
    service that generates tokens, status.generation.maxInFlightPerReplica. With a larger number
    requests wait for new replicas instead, and late."""
    grpc_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port on which the replicas accept gRPC, in Gateway mode. Clients use the port of the service,
    without TLS. The headroom server is configured to listen there."""
    service_name: (
        Annotated[
            str,
            Field(max_length=63),
            TextForm(
                "^[a-z]([-a-z0-9]*[a-z0-9])?$",
                "must be a name of a Service: lower-case letters, digits and -, starting with a "
                "letter",
            ),
        ]
        | None
    ) = None
    """With targetRef: name of the Service that the operator creates for clients in Gateway mode.
    The target's own Services are not changed. Default: the name of the InferenceService followed
    by -gateway."""
    service_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """With targetRef: port of that Service. Default: 80."""
    hedging: Hedging | None = None
    """Second attempt for slow requests, in Gateway mode. Default: none."""
    trusted_cidrs: Annotated[
        tuple[Cidr, ...], Field(max_length=16, strict=False, alias="trustedCIDRs")
    ] = ()
    """Networks of clients, such as an ingress or an authenticating proxy, whose headers of class,
    priority, tenant and retries are accepted, in Gateway mode. They are removed from the requests
    of all other clients. 0.0.0.0/0 trusts every client. Default: none."""
    jwt: Jwt | None = None
    """JSON Web Tokens of clients, which name the tenant, in Gateway mode. Default: none."""
    classes: Annotated[
        tuple[RequestClass, ...], Field(max_length=8, strict=False), MapBy("name")
    ] = ()
    """Request classes: priority and deadline in Gateway mode, promises in both modes."""
    tenants: Tenants | None = None
    """Limits per tenant, in Gateway mode. Default: unlimited."""
    traffic: Annotated[
        tuple[TrafficShare, ...], Field(max_length=4, strict=False), MapBy("service")
    ] = ()
    """Shares of requests that are sent to other InferenceServices, such as a canary, in Gateway
    mode. gRPC calls are not split."""
    models: Annotated[
        tuple[ModelRoute, ...], Field(max_length=16, strict=False), MapBy("model")
    ] = ()
    """Models that other InferenceServices serve, in Gateway mode."""

    rules = (
        Rule(
            field="traffic",
            cel="self.traffic.map(one, one.percent).sum() <= 100",
            holds=lambda routing: sum(one.percent for one in routing.traffic) <= 100,
            message="the percentages in routing.traffic must sum to at most 100",
        ),
    )

    @property
    def kind(self) -> Kind:
        """The routing discipline that the latency model assumes."""
        return Kind.LEAST_IN_FLIGHT if self.mode == "Gateway" else Kind.STICKY
