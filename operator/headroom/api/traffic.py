"""What `spec.routing` may say of single requests: their class, their tenant, and where they go."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from headroom.api.durations import Duration
from headroom.api.values import Rule, Value, Within

ServiceName = Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
HeaderName = Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
ModelName = Annotated[
    str, Field(max_length=128, pattern=r"^[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$")
]


class RequestClass(Value):
    """Requests that name this class in the header x-slo-class."""

    name: Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
    """As in the header."""
    priority: Annotated[int, Field(ge=0, le=9)] | None = None
    """Told to the replicas as x-request-priority, whatever the request says of it; 0 goes first."""
    deadline: Annotated[Duration, Within("1ms", "24h")] | None = None
    """The longest that such a request may take where it names no deadline of its own."""


class Tenants(Value):
    """What each tenant may ask for; requests that name none are one tenant."""

    header: HeaderName = "x-tenant"
    """Header that names the tenant."""
    requests_per_second: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Beyond which a tenant's requests are refused with 429; without it at any rate."""
    burst: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Requests that may come at once after a pause; without it those of one second."""
    in_flight_percent: Annotated[int, Field(ge=1, le=100)] | None = None
    """Of the requests with which all replicas are busy (twice what they compute at once as learnt,
    or all that may be in flight where that is fewer), those that one tenant may have; beyond it
    they are refused with 429."""

    rules = (
        Rule(
            cel="has(self.requestsPerSecond) || has(self.inFlightPercent)",
            holds=lambda one: bool(one.requests_per_second or one.in_flight_percent),
            message="routing.tenants needs requestsPerSecond or inFlightPercent",
        ),
        Rule(
            field="burst",
            cel="!has(self.burst) || has(self.requestsPerSecond)",
            holds=lambda one: one.burst is None or one.requests_per_second is not None,
            message="routing.tenants.burst needs requestsPerSecond",
        ),
    )


class TrafficShare(Value):
    """A share of the requests for another InferenceService of the namespace, in Gateway mode."""

    service: ServiceName
    """Its name; while it is not there, or not in Gateway mode, its share stays here."""
    percent: Annotated[int, Field(ge=0, le=100)]
    """Percent of the requests."""


class ModelRoute(Value):
    """Requests for one model by its path, for another InferenceService of the namespace."""

    model: ModelName
    """As in /v1/models/NAME and /v2/models/NAME."""
    service: ServiceName
    """Its name; while it is not there, or not in Gateway mode, its requests stay here."""


class Hedging(Value):
    """A second try while the first goes on, where slowness is the replica's and not the request's.

    The first answer counts, the other try is ended. Never for x-headroom-idempotent: false.
    """

    after: Annotated[Duration, Within("10ms", "10m")]
    """Time without an answer after which the second try begins."""
    budget_percent: Annotated[int, Field(ge=1, le=50)] = 5
    """Of the requests in flight that may be second tries, those after refusals included; three
    may be at any time."""
