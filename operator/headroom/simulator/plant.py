"""The plant as values: a replica's cost, the routing, one service, and the pool of GPUs.

Names carry units. Values are validated on construction: a `ValueError` states the rule and the
value, so an impossible plant never runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from headroom.scaling.values.policy import Policy, Routing
from headroom.simulator.clients import Clients
from headroom.simulator.cold_start import ColdStart
from headroom.simulator.validation import require


class Spread(StrEnum):
    """Variation of execution times around their mean."""

    LOGNORMAL = "lognormal"
    GAMMA = "gamma"
    """With cv 1 the exponential distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One replica: `slots` executions in parallel, each a batch of b <= max_batch requests.

    An execution takes (fixed_s + per_item_s * b) times a random factor of mean 1 and coefficient of
    variation `cv`. A free slot immediately takes the waiting requests, at most `max_batch`.
    """

    fixed_s: float
    per_item_s: float
    max_batch: int = 1
    slots: int = 1
    cv: float = 0.0
    spread: Spread = Spread.LOGNORMAL

    def __post_init__(self) -> None:
        """Raise ValueError for an impossible server."""
        for name in ("fixed_s", "per_item_s"):
            value = getattr(self, name)
            require(0 <= value < math.inf, f"{name} must be >= 0", value)
        require(self.fixed_s + self.per_item_s > 0, "a request must take time", 0.0)
        require(self.max_batch >= 1, "max_batch must be >= 1", self.max_batch)
        require(self.slots >= 1, "slots must be >= 1", self.slots)
        require(0 <= self.cv <= 10, "cv must be >= 0 and <= 10", self.cv)

    def execution_s(self, size: float) -> float:
        """Mean seconds that a batch of this size takes."""
        return self.fixed_s + self.per_item_s * size

    @property
    def full_rps(self) -> float:
        """Throughput in full batches on all slots: the denominator of utilization."""
        return self.slots * self.max_batch / self.execution_s(self.max_batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The routing between clients and replicas."""

    routing: Routing = Routing.RANDOM
    connections: int = 64
    """For `Routing.STICKY`: keep-alive connections, each bound to one replica while it is ready.
    Each request takes one at random, also one in use, unless clients keep a pool (`Clients`)."""
    in_flight_cap: int | None = None
    """For `Routing.CENTRAL`: maximum number of requests at one replica; None means 2 batches, or
    slots + 1 without batching. `Headroom` reads what this queue rejects, the peers do not."""

    def __post_init__(self) -> None:
        """Raise ValueError for an impossible network."""
        require(self.connections >= 1, "connections must be >= 1", self.connections)
        cap = self.in_flight_cap
        require(cap is None or cap >= 1, "in_flight_cap must be >= 1", cap)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSpec:
    """One service: its policy, its plant and its clients."""

    name: str
    policy: Policy
    server: Server
    network: Network = field(default_factory=Network)
    clients: Clients = field(default_factory=Clients)
    cold_start: ColdStart = field(default_factory=lambda: ColdStart.of(60.0))
    initial_replicas: int | None = None
    """Replicas that are ready at the start; None means enough for the first arrivals."""
    drain_s: float = 60.0
    """A removed replica finishes its requests within this time."""
    advertised: Server | None = None
    """The cost that the servers advertise at warm-up, right or wrong; None: they advertise only the
    batch size, and the cost must be learned."""

    def __post_init__(self) -> None:
        """Raise ValueError for a latency target below the time of a single request."""
        floor_s, target_s = self.server.execution_s(1), self.policy.latency_target_s
        require(
            floor_s <= target_s,
            f"{self.name}: the target must be at least the time of one request ({floor_s:g} s)",
            f"{target_s:g} s",
        )
        require(self.drain_s >= 0, f"{self.name}: drain_s must be >= 0", self.drain_s)
        initial = self.initial_replicas
        allowed = initial is None or initial >= 0
        require(allowed, f"{self.name}: initial_replicas must be >= 0", initial)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The pool of GPUs that all services share."""

    gpus: int | None = None
    """Number of replicas that fit; None means no limit. Further replicas are unschedulable."""
    provision_s: float = 0.0
    """A pod with a free GPU gets its node after this time (a cluster autoscaler)."""

    def __post_init__(self) -> None:
        """Raise ValueError for an impossible pool."""
        require(self.gpus is None or self.gpus >= 0, "gpus must be >= 0", self.gpus)
        require(self.provision_s >= 0, "provision_s must be >= 0", self.provision_s)
