"""A closed loop as a workload: its users are clients, its arrivals their undelayed demand.

The kernel makes the actual requests of users. The bounds, which plan from arrivals, get the demand
of N users of a healthy service: N / (think_s + its mean latency), evenly spaced. Worked: 60 users
that think 2 s on average, before a service of 0.1 s: 28.6 requests per second. This is an upper
bound of what the service sees: the later its answers, the less its users ask for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headroom.simulator.capacity import healthy_latency_s
from headroom.simulator.plant import ServiceSpec
from headroom.simulator.scenario import Times, Workload

_CHUNK = 100_000
_REPLICAS = 4
"""Replicas behind which the healthy latency is measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserDemand:
    """The demand of users that are served without delay: the `Arrivals` of a closed loop."""

    steps: tuple[tuple[float, int], ...]
    """(time_s, users from then on)."""
    cycle_s: float
    """Mean time from one request of a user to the next."""
    duration_s: float

    @property
    def mean_rps(self) -> float:
        """Requests to expect per second."""
        edges_s, rates = self.rates()
        return float((np.diff(edges_s) * rates).sum()) / self.duration_s

    def rates(self) -> tuple[Times, Times]:
        """Return the edges of the steps within the duration, [steps + 1], and their rates."""
        kept = [(time_s, users) for time_s, users in self.steps if time_s < self.duration_s]
        if not kept or kept[0][0] > 0:
            kept.insert(0, (0.0, 0))
        edges_s = np.array([*(time_s for time_s, _ in kept), self.duration_s])
        return edges_s, np.array([users / self.cycle_s for _, users in kept])

    def chunks(self, seed: int) -> Iterator[Times]:
        """Yield evenly spaced times; every seed has the same."""
        edges_s, rates = self.rates()
        for start_s, end_s, rate_rps in zip(edges_s[:-1], edges_s[1:], rates, strict=True):
            count = int(rate_rps * (end_s - start_s))
            for first in range(0, count, _CHUNK):
                last = min(first + _CHUNK, count)
                times_s: Times = start_s + (np.arange(first, last) + 0.5) / rate_rps
                yield times_s


def closed_loop(spec: ServiceSpec, duration_s: float) -> Workload:
    """Return the workload of a service with users.

    Raises:
        ValueError: the service has no users.
    """
    clients = spec.clients
    if clients.users is None:
        raise ValueError(f"{spec.name}: users must be given for a closed loop; got none")
    demand = UserDemand(
        steps=clients.user_steps,
        cycle_s=clients.think_s + healthy_latency_s(spec, _REPLICAS),
        duration_s=duration_s,
    )
    return Workload(spec=spec, arrivals=demand)
