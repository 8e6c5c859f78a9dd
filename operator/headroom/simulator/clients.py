"""The clients as values: their requests, patience and retries."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from headroom.simulator.validation import require

Users = int | tuple[tuple[float, int], ...]
"""Users of a closed loop: a constant, or steps (time_s, users from then on)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Clients: how they send, how long they wait, and how many requests may be queued.

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
    """A kept connection is closed after this many requests; None: when its replica goes."""
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
            require(value is None or value > 0, f"{name} must be > 0", value)
        waiting = self.max_waiting
        require(waiting is None or waiting >= 0, "max_waiting must be >= 0", waiting)
        for name in ("connections", "connection_requests"):
            value = getattr(self, name)
            require(value is None or value >= 1, f"{name} must be >= 1", value)
        for name in ("think_s", "backoff_s"):
            value = getattr(self, name)
            require(0 <= value < math.inf, f"{name} must be >= 0", value)
        require(0 <= self.retries <= 100, "retries must be >= 0 and <= 100", self.retries)
        for name in ("connection_requests", "connection_idle_s"):
            kept = self.connections is not None or self.users is not None
            given = getattr(self, name) is not None
            require(kept or not given, f"{name} needs connections or users", "neither")
        alone = self.users is None and self.think_s > 0
        require(not alone, "think_s needs users", "none")
        self._check_steps()

    def _check_steps(self) -> None:
        steps = self.user_steps
        times_s = [time_s for time_s, _ in steps]
        rising = all(one < other for one, other in pairwise(times_s))
        right = rising and all(0 <= time_s < math.inf for time_s in times_s)
        require(right, "the times of users must be >= 0 and increase", times_s)
        counts = [count for _, count in steps]
        require(all(count >= 0 for count in counts), "users must be >= 0", counts)
        some = self.users is None or bool(steps)
        require(some, "users must have at least one step", "none")

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
