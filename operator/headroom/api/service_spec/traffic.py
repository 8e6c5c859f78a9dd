"""Parts of `spec.routing` that apply to single requests: class, tenant, destination, hedging."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from headroom.api.durations import Duration
from headroom.api.service_spec.objectives import LatencyObjective, TokenObjective
from headroom.api.text_forms import DNS_LABEL, NAME_OF_MODEL, TextForm
from headroom.api.values import Rule, Value, Within

ServiceName = Annotated[str, Field(max_length=63), DNS_LABEL]
HeaderName = Annotated[
    str,
    Field(max_length=63),
    TextForm(DNS_LABEL.pattern, "must be a header in lower-case letters, digits and -"),
]
_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
Cidr = Annotated[
    str,
    Field(max_length=18),
    TextForm(
        rf"^{_OCTET}(\.{_OCTET}){{3}}/(3[0-2]|[12]?[0-9])$",
        "must be an IPv4 network, such as 10.0.0.0/8",
    ),
]
"""An IPv4 network; gateways listen on IPv4."""
ModelName = Annotated[str, Field(max_length=128), NAME_OF_MODEL]


class RequestClass(Value):
    """Class of the requests that name it in the header x-slo-class, from trusted networks.

    Promises per class are measured where runtime.profile is headroom; with them the operator sets
    HEADROOM_SLO_CLASSES, unless runtime.env does. Other servers do not count per class: there the
    strictest promise is kept for all requests.
    """

    name: Annotated[str, Field(max_length=63), DNS_LABEL]
    """Value of the header."""
    priority: Annotated[int, Field(ge=0, le=9)] | None = None
    """Sent to the replicas as x-request-priority, replacing the client's value; 0 is highest."""
    deadline: Annotated[Duration, Within("1ms", "24h")] | None = None
    """Maximum duration of such a request, unless it names a deadline."""
    time_to_first_token: TokenObjective | None = None
    """Time to first token of this class, for generative servers. Default: that of slo."""
    time_per_output_token: TokenObjective | None = None
    """Time per output token of this class, for generative servers. Default: that of slo."""
    latency: LatencyObjective | None = None
    """Latency of this class, for generative servers. Default: that of slo."""
    best_effort: bool = False
    """Whether this class has no promise, not even those of slo: none of its requests counts as
    missed. The headroom server serves it only with what the other classes leave, and no replica is
    added for it; elsewhere its requests count as load."""

    rules = (
        Rule(
            field="bestEffort",
            cel="!self.bestEffort || !(has(self.timeToFirstToken) || "
            "has(self.timePerOutputToken) || has(self.latency))",
            holds=lambda one: not one.best_effort or not one.promises,
            message="bestEffort must be false where timeToFirstToken, timePerOutputToken or "
            "latency is set",
        ),
    )

    @property
    def promises(self) -> bool:
        """Whether it has a promise of its own."""
        return not (
            self.time_to_first_token is None
            and self.time_per_output_token is None
            and self.latency is None
        )


class Tenants(Value):
    """Limits per tenant: that of the token, that which a trusted network names, or the address.

    Requests from trusted networks that name no tenant share one.
    """

    header: HeaderName = "x-tenant"
    """Header that names the tenant, in requests from trusted networks."""
    requests_per_second: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Maximum request rate of a tenant; more requests get 429. Default: unlimited."""
    burst: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Requests that a tenant may send at once after a pause. Default: those of one second."""
    in_flight_percent: Annotated[int, Field(ge=1, le=100)] | None = None
    """Maximum share of in-flight requests that one tenant may use, in percent. 100 % is twice the
    number of requests that the replicas can process at once, or maxInFlight if that is lower.
    Requests beyond the share get 429. Default: half of maxInFlight."""

    rules = (
        Rule(
            cel="has(self.requestsPerSecond) || has(self.inFlightPercent)",
            holds=lambda one: bool(one.requests_per_second or one.in_flight_percent),
            message="routing.tenants must set requestsPerSecond, inFlightPercent or both",
        ),
        Rule(
            field="burst",
            cel="!has(self.burst) || has(self.requestsPerSecond)",
            holds=lambda one: one.burst is None or one.requests_per_second is not None,
            message="routing.tenants.requestsPerSecond must be set with burst",
        ),
    )


class TrafficShare(Value):
    """Share of the requests that another InferenceService of the namespace serves."""

    service: ServiceName
    """Name of that InferenceService. While it is missing or not in Gateway mode, its share is
    served here."""
    percent: Annotated[int, Field(ge=0, le=100)]
    """Share of the requests, in percent."""


class ModelRoute(Value):
    """Requests for one model, selected by path, that another InferenceService serves."""

    model: ModelName
    """Name of the model in /v1/models/NAME and /v2/models/NAME."""
    service: ServiceName
    """Name of that InferenceService. While it is missing or not in Gateway mode, the requests are
    served here."""


class Hedging(Value):
    """Second attempt while the first one continues, for requests that a slow replica delays.

    The first response wins and the other attempt is cancelled. Requests with the header
    x-headroom-idempotent: false are never hedged.
    """

    after: Annotated[Duration, Within("10ms", "10m")]
    """Time without a response after which the second attempt starts."""
    budget_percent: Annotated[int, Field(ge=1, le=50)] = 5
    """Maximum share of in-flight requests that are second attempts or retries, in percent; three
    are always allowed."""
