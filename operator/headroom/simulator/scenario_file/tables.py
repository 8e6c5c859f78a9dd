"""The tables of a scenario file, except arrivals: their keys, types and bounds.

Times are strings such as "250ms" or "3m". A missing key has the default of the value that the
table describes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from headroom.api.durations import Duration
from headroom.api.values import Within
from headroom.scaling.values.policy import RateLimit, Routing
from headroom.simulator.plant import Clients, Cluster, ColdStart, Network, Phase, Server, Spread
from headroom.simulator.scenario import Fault, FaultKind

ROUTINGS = {routing.name.lower().replace("_", "-"): routing for routing in Routing}
MANY = 1_000_000

Name = Annotated[str, Field(max_length=120, pattern=r"^[A-Za-z0-9][-A-Za-z0-9._/]*$")]
Time = Annotated[Duration, Within("0s", "9000h")]
Span = Annotated[Duration, Within("1ms", "9000h")]
Replicas = Annotated[int, Field(ge=1, le=10_000)]


def rule_broken(rule: str, got: object) -> PydanticCustomError:
    """Return the error of a rule across keys, in the form of all errors."""
    return PydanticCustomError("rule", "{rule}", {"rule": rule, "got": got})


class Table(BaseModel):
    """A table: frozen, without coercion or unknown keys."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)

    renamed: ClassVar[Mapping[str, str]] = {}
    """Keys whose name in the value is neither key nor key + "_s"."""

    @model_validator(mode="before")
    @classmethod
    def _known(cls, value: object) -> object:
        if isinstance(value, Mapping):
            for key in value:
                if key not in cls.model_fields:
                    known = list(cls.model_fields)
                    rule = f"must be one of the keys {', '.join(known)}"
                    context = {"rule": rule, "key": key, "known": known}
                    raise PydanticCustomError("unknown_key", "{rule}", context)
        return value

    def given(self) -> dict[str, Any]:
        """Return the keys that are set, with the names and units of the value."""
        fields: dict[str, Any] = {}
        for key in type(self).model_fields:
            if key in self.model_fields_set:
                value = getattr(self, key)
                timed = isinstance(value, Duration)
                name = self.renamed.get(key, f"{key}_s" if timed else key)
                fields[name] = value.seconds if timed else value
        return fields


class ClusterTable(Table):
    """The pool of GPUs."""

    gpus: Annotated[int, Field(ge=0, le=MANY)] | None = None
    provision: Time | None = None

    def value(self) -> Cluster:
        """Return the pool."""
        return Cluster(**self.given())


class CostTable(Table):
    """The cost of a replica, real or advertised."""

    fixed: Time = Duration(0)
    per_item: Time = Duration(0)
    max_batch: Annotated[int, Field(le=MANY)] | None = None
    slots: Annotated[int, Field(le=MANY)] | None = None
    cv: float | None = None
    spread: Literal["lognormal", "gamma"] | None = None

    def value(self) -> Server:
        """Return the replica.

        Raises:
            ValueError: it is invalid.
        """
        fields: dict[str, Any] = {"fixed_s": 0.0, "per_item_s": 0.0} | self.given()
        fields.pop("advertised", None)
        if "spread" in fields:
            fields["spread"] = Spread(fields["spread"])
        return Server(**fields)


class ServerTable(CostTable):
    """The server of a replica."""

    advertised: CostTable | None = None


class NetworkTable(Table):
    """The routing between clients and replicas."""

    routing: Literal[tuple(ROUTINGS)] | None = None  # type: ignore[valid-type]
    connections: Annotated[int, Field(le=MANY)] | None = None
    in_flight_cap: Annotated[int, Field(le=MANY)] | None = None

    def value(self) -> Network:
        """Return the network.

        Raises:
            ValueError: it is invalid.
        """
        fields = self.given()
        if "routing" in fields:
            fields["routing"] = ROUTINGS[fields["routing"]]
        return Network(**fields)


Count = Annotated[int, Field(ge=0, le=MANY)]


class UsersTable(Table):
    """A step of the users of a closed loop."""

    at: Time
    users: Count


class ClientsTable(Table):
    """How clients send and wait, and how many requests may be queued."""

    timeout: Time | None = None
    deadline: Time | None = None
    max_waiting: Annotated[int, Field(le=MANY)] | None = None
    connections: Annotated[int, Field(le=MANY)] | None = None
    connection_requests: Annotated[int, Field(le=MANY)] | None = None
    connection_idle: Time | None = None
    users: Count | Annotated[list[UsersTable], Field(min_length=1, max_length=1000)] | None = None
    think: Time | None = None
    retries: int | None = None
    backoff: Time | None = None
    retries_marked: bool | None = None

    def value(self) -> Clients:
        """Return the clients.

        Raises:
            ValueError: they are invalid.
        """
        fields = self.given()
        if isinstance(self.users, list):
            fields["users"] = tuple((step.at.seconds, step.users) for step in self.users)
        return Clients(**fields)


class SloTable(Table):
    """The service level objective."""

    renamed: ClassVar[Mapping[str, str]] = {"target": "latency_target_s"}

    target: Span
    percentile: Literal[90, 95, 99] | None = None
    queue_depth: Annotated[int, Field(ge=1, le=100_000)] | None = None
    utilization_ceiling: Annotated[float, Field(gt=0, le=0.95)] | None = None

    def given(self) -> dict[str, Any]:
        """Return the fields of a policy that the file sets."""
        fields = super().given()
        if "percentile" in fields:
            fields["latency_percentile"] = fields.pop("percentile") / 100
        return fields


class RateTable(Table):
    """The maximum change within a period."""

    period: Annotated[Duration, Within("1s", "1h")]
    replicas: Replicas | None = None
    percent: Replicas | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.replicas is None and self.percent is None:
            raise rule_broken("must have replicas, percent or both", "neither")
        return self


class DirectionTable(Table):
    """How fast replicas are added or removed."""

    stabilization: Annotated[Duration, Within("0s", "1h")] | None = None
    rate: RateTable | None = None


class ScalingTable(Table):
    """The limits of the autoscaler."""

    min_replicas: Replicas | None = None
    max_replicas: Replicas | None = None
    initial_replicas: Annotated[int, Field(ge=0, le=10_000)] | None = None
    priority: Annotated[int, Field(ge=-MANY, le=MANY)] | None = None
    scale_up: DirectionTable = DirectionTable()
    scale_down: DirectionTable = DirectionTable()

    def given(self) -> dict[str, Any]:
        """Return the fields of a policy that the file sets."""
        fields = super().given()
        fields.pop("initial_replicas", None)
        for key in ("scale_up", "scale_down"):
            fields.pop(key, None)
            direction: DirectionTable = getattr(self, key)
            if direction.stabilization is not None:
                fields[f"{key}_stabilization_s"] = direction.stabilization.seconds
            if direction.rate is not None:
                fields[f"{key}_rate"] = RateLimit(**direction.rate.given())
        return fields


class PhaseTable(Table):
    """One phase of a cold start."""

    name: Annotated[str, Field(min_length=1, max_length=60)]
    median: Time
    spread: float | None = None


class ColdStartTable(Table):
    """The cold start of a replica: a total in typical proportions, or phase by phase."""

    total: Time | None = None
    spread: float | None = None
    phases: Annotated[list[PhaseTable], Field(min_length=1, max_length=50)] | None = None
    timeout: Annotated[Duration, Within("1s", "24h")] | None = None
    """A replica that warms up for longer counts as late."""

    @model_validator(mode="after")
    def _either(self) -> Self:
        if (self.total is None) == (self.phases is None):
            both = "neither" if self.total is None else "both"
            raise rule_broken("must have either total or phases", both)
        if self.phases is not None and self.spread is not None:
            raise rule_broken("must have spread next to total, or in each phase", "spread")
        return self

    def value(self) -> ColdStart:
        """Return the cold start.

        Raises:
            ValueError: a phase is invalid.
        """
        if self.phases is not None:
            return ColdStart(phases=tuple(Phase(**phase.given()) for phase in self.phases))
        spread = 1.0 if self.spread is None else self.spread
        return ColdStart.of(self.total.seconds if self.total else 0.0, spread)


class FaultTable(Table):
    """One fault."""

    kind: Literal[tuple(kind.value for kind in FaultKind)]  # type: ignore[valid-type]
    start: Time
    duration: Time | None = None
    share: float | None = None
    factor: float | None = None
    service: str | None = None

    def value(self) -> Fault:
        """Return the fault.

        Raises:
            ValueError: it is invalid.
        """
        fields = self.given()
        return Fault(**fields | {"kind": FaultKind(fields["kind"])})
