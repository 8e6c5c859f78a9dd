"""The plant as values: a replica's cost, routing, clients, cold starts and the pool of GPUs.

Names carry units. Values are validated on construction: a `ValueError` states the rule and the
value, so an impossible plant never runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from headroom.scaling.values.policy import Policy, Routing


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
        _require(self.connections >= 1, "connections must be >= 1", self.connections)
        cap = self.in_flight_cap
        _require(cap is None or cap >= 1, "in_flight_cap must be >= 1", cap)


Users = int | tuple[tuple[float, int], ...]
"""Users of a closed loop: a constant, or steps (time_s, users from then on)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """How clients send, how long they wait for an answer, and how many requests may be queued.

    By default every request is sent when it arrives, and once. A latency counts from the moment at
    which a client wants to send, whether or not it can: there is no coordinated omission. Servers
    see a request only once it is sent.
    """

    timeout_s: float | None = None
    """The client gives up after this time; waiting requests are then cancelled, running ones are
    finished without a reader. With `connections`, `users` or `retries` each try has this time, its
    wait for a connection included."""
    deadline_s: float | None = None
    """A server does not start requests that have waited longer than this (expired: a miss)."""
    max_waiting: int | None = None
    """Maximum queue length of one replica (or of the central queue); more requests are refused."""
    connections: int | None = None
    """Maximum number of requests between the clients and the service; more wait at the clients,
    first in, first out. Under `Routing.STICKY` each connection is kept alive and bound to one
    replica, in place of `Network.connections`: a request takes the idle connection that was used
    last, else opens a new one. None: no limit."""
    connection_requests: int | None = None
    """A kept connection is closed after so many requests; None: when its replica goes."""
    connection_idle_s: float | None = None
    """A kept connection is closed after so long without a request; None: never."""
    users: Users | None = None
    """A closed loop: each user sends a request, waits for its end, thinks, and sends again. The
    arrivals of the workload are then only the demand that the bounds plan for (see
    `closed_loop.py`). None: an open loop."""
    think_s: float = 0.0
    """Mean of the exponential time that a user thinks."""
    retries: int = 0
    """Further tries of a request after a miss that its client sees: it gave up, was refused,
    expired or failed. Only an answer to the first try can be in time."""
    backoff_s: float = 0.0
    """Mean time before the first retry, doubled for each further one, times a uniform factor in
    [0.5, 1.5); 0: at once."""
    retries_marked: bool = False
    """Retries carry a header, so that servers count them."""

    def __post_init__(self) -> None:
        """Raise ValueError for impossible limits."""
        for name in ("timeout_s", "deadline_s", "connection_idle_s"):
            value = getattr(self, name)
            _require(value is None or value > 0, f"{name} must be > 0", value)
        waiting = self.max_waiting
        _require(waiting is None or waiting >= 0, "max_waiting must be >= 0", waiting)
        for name in ("connections", "connection_requests"):
            value = getattr(self, name)
            _require(value is None or value >= 1, f"{name} must be >= 1", value)
        for name in ("think_s", "backoff_s"):
            value = getattr(self, name)
            _require(0 <= value < math.inf, f"{name} must be >= 0", value)
        _require(0 <= self.retries <= 100, "retries must be >= 0 and <= 100", self.retries)
        for name in ("connection_requests", "connection_idle_s"):
            kept = self.connections is not None or self.users is not None
            given = getattr(self, name) is not None
            _require(kept or not given, f"{name} needs connections or users", "neither")
        alone = self.users is None and self.think_s > 0
        _require(not alone, "think_s needs users", "none")
        self._check_steps()

    def _check_steps(self) -> None:
        steps = self.user_steps
        times_s = [time_s for time_s, _ in steps]
        rising = all(one < other for one, other in pairwise(times_s))
        right = rising and all(0 <= time_s < math.inf for time_s in times_s)
        _require(right, "the times of users must be >= 0 and increase", times_s)
        counts = [count for _, count in steps]
        _require(all(count >= 0 for count in counts), "users must be >= 0", counts)
        some = self.users is None or bool(steps)
        _require(some, "users must have at least one step", "none")

    @property
    def user_steps(self) -> tuple[tuple[float, int], ...]:
        """The users as steps (time_s, users); empty in an open loop."""
        if self.users is None:
            return ()
        return ((0.0, self.users),) if isinstance(self.users, int) else self.users

    @property
    def most_users(self) -> int:
        """The largest number of users at any time; 0 in an open loop."""
        return max((count for _, count in self.user_steps), default=0)

    @property
    def kept_connections(self) -> int | None:
        """The connections of a pool that keeps them alive: one per user if there is no limit."""
        if self.connections is None and self.users is not None:
            return max(1, self.most_users)
        return self.connections

    @property
    def plain(self) -> bool:
        """Whether every request is sent when it arrives, and once."""
        return self.connections is None and self.users is None and self.retries == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One phase of a cold start: lognormal around its median; `spread` 1.2 means p84 / median."""

    name: str
    median_s: float
    spread: float = 1.0

    def __post_init__(self) -> None:
        """Raise ValueError for an impossible phase."""
        _require(self.median_s >= 0, f"{self.name}: median_s must be >= 0", self.median_s)
        _require(self.spread >= 1, f"{self.name}: spread must be >= 1", self.spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdStart:
    """The phases of a new replica between its node assignment and readiness."""

    phases: tuple[Phase, ...] = (Phase(name="warming", median_s=60.0),)

    @property
    def median_s(self) -> float:
        """Sum of the phases' medians."""
        return sum(phase.median_s for phase in self.phases)

    @classmethod
    def of(cls, seconds: float, spread: float = 1.0) -> ColdStart:
        """Return a cold start of typical proportions: 15 % pulling, 15 % starting, 70 % warming."""
        return cls(
            phases=(
                Phase(name="pulling", median_s=0.15 * seconds, spread=spread),
                Phase(name="starting", median_s=0.15 * seconds, spread=spread),
                Phase(name="warming", median_s=0.70 * seconds, spread=spread),
            )
        )


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
    """The pool of GPUs that all services share."""

    gpus: int | None = None
    """Number of replicas that fit; None means no limit. Further replicas are unschedulable."""
    provision_s: float = 0.0
    """A pod with a free GPU gets its node after this time (a cluster autoscaler)."""

    def __post_init__(self) -> None:
        """Raise ValueError for an impossible pool."""
        _require(self.gpus is None or self.gpus >= 0, "gpus must be >= 0", self.gpus)
        _require(self.provision_s >= 0, "provision_s must be >= 0", self.provision_s)
