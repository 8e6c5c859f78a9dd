"""The tables of a scenario file that give the plant: accelerators, replicas, clients, faults."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from headroom.api.durations import Duration
from headroom.api.values import Within
from headroom.scaling.values.policy import Routing
from headroom.simulator.clients import Clients
from headroom.simulator.cold_start import ColdStart, Phase
from headroom.simulator.plant import Cluster, Network, Server, Spread
from headroom.simulator.scenario import Fault, FaultKind
from headroom.simulator.scenario_file.table import MANY, Count, Table, Time, rule_broken

ROUTINGS = {routing.name.lower().replace("_", "-"): routing for routing in Routing}


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


class UsersTable(Table):
    """A step of the users of a closed loop."""

    at: Time
    users: Count


class ClientsTable(Table):
    """Clients: how they send and wait, and how many requests may be queued."""

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
