"""`spec.routing`: how requests reach the replicas."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from headroom.api.durations import Duration
from headroom.api.traffic import Hedging, ModelRoute, RequestClass, Tenants, TrafficShare
from headroom.api.values import MapBy, Rule, Value, Within
from headroom.scaling.values import Routing as Kind


class Routing(Value):
    """How requests reach the replicas; a change takes effect within seconds."""

    mode: Literal["Service", "Gateway"] = "Service"
    """Service balances connections, as a ClusterIP does; Gateway sends each request to the replica
    with the fewest in flight, under the same name and port. Without a gateway that is ready it is
    Service."""
    request_timeout: Annotated[Duration, Within("1s", "24h")] = Duration.parse("5m")
    """The longest that a request may take in Gateway mode; one that names a deadline
    (x-request-timeout, grpc-timeout) is held to its own."""
    max_body_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] = 16 << 20
    """The largest body of a request in Gateway mode."""
    slow_start: Annotated[Duration, Within("1s", "15m")] | None = None
    """Time over which a fresh replica gets up to its full share in Gateway mode; without it at
    once."""
    max_in_flight: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Requests in flight per ready replica beyond which the gateway refuses with 429; without it
    what the learnt model answers within twice the target, and at least two batches."""
    grpc_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port at which the replicas take gRPC, in Gateway mode; clients call the service's own port,
    without TLS. The headroom server is told to listen there."""
    hedging: Hedging | None = None
    """A second try for slow requests, in Gateway mode; without it none."""
    classes: Annotated[
        tuple[RequestClass, ...], Field(max_length=8, strict=False), MapBy("name")
    ] = ()
    """Classes of requests, in Gateway mode."""
    tenants: Tenants | None = None
    """What each tenant may ask for, in Gateway mode; without it whatever there is."""
    traffic: Annotated[
        tuple[TrafficShare, ...], Field(max_length=4, strict=False), MapBy("service")
    ] = ()
    """Shares of the requests that go elsewhere, in Gateway mode: a canary. Calls of gRPC stay."""
    models: Annotated[
        tuple[ModelRoute, ...], Field(max_length=16, strict=False), MapBy("model")
    ] = ()
    """Models that are served elsewhere, in Gateway mode."""

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
        """What the model of the tail is asked for."""
        return Kind.LEAST_IN_FLIGHT if self.mode == "Gateway" else Kind.RANDOM
