"""The plant as values: a replica's cost, routing, clients, cold starts and the pool of GPUs.

Units stand in the names. Everything is checked when it is made: a `ValueError` says the rule and
the value received, and nothing impossible is ever run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from headroom.scaling.values import Policy, Routing


class Spread(StrEnum):
    """How execution times vary around their mean."""

    LOGNORMAL = "lognormal"
    GAMMA = "gamma"
    """With cv 1 the exponential distribution."""


def _require(holds: bool, rule: str, got: object) -> None:
    if not holds:
        raise ValueError(f"{rule}; got {got}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One replica: `slots` executions side by side, each a batch of b <= max_batch requests.

    An execution takes (fixed_s + per_item_s * b) times a random factor of mean 1 and coefficient of
    variation `cv`. A free slot takes what waits at once, at most `max_batch`.
    """

    fixed_s: float
    per_item_s: float
    max_batch: int = 1
    slots: int = 1
    cv: float = 0.0
    spread: Spread = Spread.LOGNORMAL

    def __post_init__(self) -> None:
        """Raise ValueError for a server that cannot be."""
        for name in ("fixed_s", "per_item_s"):
            value = getattr(self, name)
            _require(0 <= value < math.inf, f"{name} must be >= 0", value)
        _require(self.fixed_s + self.per_item_s > 0, "a request must take time", 0.0)
        _require(self.max_batch >= 1, "max_batch must be >= 1", self.max_batch)
        _require(self.slots >= 1, "slots must be >= 1", self.slots)
        _require(0 <= self.cv <= 10, "cv must be >= 0 and <= 10", self.cv)

    def execution_s(self, size: float) -> float:
        """Mean seconds that a batch of this size takes."""
        return self.fixed_s + self.per_item_s * size

    @property
    def full_rps(self) -> float:
        """Throughput in full batches on all slots: the denominator of utilization."""
        return self.slots * self.max_batch / self.execution_s(self.max_batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What stands between clients and replicas."""

    routing: Routing = Routing.RANDOM
    connections: int = 64
    """Of `Routing.STICKY`: keep-alive connections, each bound to one replica while it is ready."""
    in_flight_cap: int | None = None
    """Of `Routing.CENTRAL`: requests handed to one replica at most; None takes 2 batches, or
    slots + 1 without batching."""

    def __post_init__(self) -> None:
        """Raise ValueError for a network that cannot be."""
        _require(self.connections >= 1, "connections must be >= 1", self.connections)
        cap = self.in_flight_cap
        _require(cap is None or cap >= 1, "in_flight_cap must be >= 1", cap)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """How long a request is worth something, and how many may wait."""

    timeout_s: float | None = None
    """The client gives up after this long; waiting requests are then cancelled, running ones are
    finished for nobody."""
    deadline_s: float | None = None
    """A server does not begin what has waited longer than this (expired: a miss)."""
    max_waiting: int | None = None
    """Requests waiting at one replica (or in the central queue) at most; more are refused."""

    def __post_init__(self) -> None:
        """Raise ValueError for limits that cannot be."""
        for name in ("timeout_s", "deadline_s"):
            value = getattr(self, name)
            _require(value is None or value > 0, f"{name} must be > 0", value)
        waiting = self.max_waiting
        _require(waiting is None or waiting >= 0, "max_waiting must be >= 0", waiting)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One phase of a cold start: lognormal around its median; `spread` 1.2 means p84 / median."""

    name: str
    median_s: float
    spread: float = 1.0

    def __post_init__(self) -> None:
        """Raise ValueError for a phase that cannot be."""
        _require(self.median_s >= 0, f"{self.name}: median_s must be >= 0", self.median_s)
        _require(self.spread >= 1, f"{self.name}: spread must be >= 1", self.spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdStart:
    """What a new replica goes through once it has a node."""

    phases: tuple[Phase, ...] = (Phase(name="warming", median_s=60.0),)

    @property
    def median_s(self) -> float:
        """Sum of the phases' medians."""
        return sum(phase.median_s for phase in self.phases)

    @classmethod
    def of(cls, seconds: float, spread: float = 1.0) -> ColdStart:
        """Return a start in usual proportions: pulling 15 %, starting 15 %, warming the rest."""
        return cls(
            phases=(
                Phase(name="pulling", median_s=0.15 * seconds, spread=spread),
                Phase(name="starting", median_s=0.15 * seconds, spread=spread),
                Phase(name="warming", median_s=0.70 * seconds, spread=spread),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSpec:
    """One service: its promise and permissions, its plant, its clients."""

    name: str
    policy: Policy
    server: Server
    network: Network = field(default_factory=Network)
    clients: Clients = field(default_factory=Clients)
    cold_start: ColdStart = field(default_factory=lambda: ColdStart.of(60.0))
    initial_replicas: int | None = None
    """Ready at the start; None takes what arrives before others can be ready."""
    drain_s: float = 60.0
    """A removed replica finishes what it has, at most this long."""
    advertised: Server | None = None
    """The cost that the servers claim at warm-up, rightly or wrongly; None: they say only how large
    a batch may be, and the rest has to be learnt."""

    def __post_init__(self) -> None:
        """Raise ValueError for a promise that one request alone would break."""
        floor_s, target_s = self.server.execution_s(1), self.policy.latency_target_s
        _require(
            floor_s <= target_s,
            f"{self.name}: the target must be at least the time of one request ({floor_s:g} s)",
            f"{target_s:g} s",
        )
        _require(self.drain_s >= 0, f"{self.name}: drain_s must be >= 0", self.drain_s)
        initial = self.initial_replicas
        allowed = initial is None or initial >= 0
        _require(allowed, f"{self.name}: initial_replicas must be >= 0", initial)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The pool that all services share, and how it is watched."""

    gpus: int | None = None
    """Replicas that fit at once; None: as many as are asked for. More are unschedulable."""
    provision_s: float = 0.0
    """A pod that finds a free GPU gets its node after this long (a cluster autoscaler)."""

    def __post_init__(self) -> None:
        """Raise ValueError for a pool that cannot be."""
        _require(self.gpus is None or self.gpus >= 0, "gpus must be >= 0", self.gpus)
        _require(self.provision_s >= 0, "provision_s must be >= 0", self.provision_s)
