"""Models any percentile of the latency of a service, given arrivals, replicas and routing.

    RANDOM            each replica sees its own Poisson stream: the curve of one replica
    LEAST_IN_FLIGHT, POWER_OF_TWO, ROUND_ROBIN, CENTRAL    curves that improve with N
    STICKY            the curve of one replica at the load of the most loaded one

Replicas with one execution at a time use precomputed tables, replicas with several slots the same
tables and, if there are many, Erlang-C and Allen-Cunneen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from headroom.scaling.frozen import cached_property
from headroom.scaling.latency import latency_tables, slot_pool, sticky_connections
from headroom.scaling.latency.load_curve import LoadCurve, execution_percentile
from headroom.scaling.mathematics.bisection import smallest
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.policy import Routing

LARGEST_BATCH = 64
"""Above this batch the scaled curve hardly changes any more."""
SHARE_STEP = 0.002
CV_STEP = 0.005
"""Curves are cached for the idle time in steps of 0.2 % and variation in steps of 0.005, both
rounded up, so that a cost that is learned at each tick finds its curve in the cache."""
LARGEST_CV = 2.0
"""A larger variation is treated as this one."""
_ROUNDING = 1e-9
"""Ignores rounding errors of a division: 2.0000000001 is two replicas."""


@dataclass(frozen=True, kw_only=True)
class TailLatency:
    """The target percentile of the latency of a service, given its arrivals and replicas.

    What depends on the cost alone is computed once: a decision evaluates the model several times.
    """

    cost: CostModel
    percentile: float
    routing: Routing = Routing.RANDOM
    connections: int = sticky_connections.CONNECTIONS
    """Equally busy keep-alive connections, under STICKY."""
    unlucky: float = sticky_connections.UNLUCKY
    """Share of their bindings to replicas that is worse than assumed."""

    def latency_s(self, arrival_rps: float, replicas: int) -> float:
        """Return the percentile in seconds when `replicas` share these arrivals; inf if too few."""
        utilization = arrival_rps / (replicas * self.full_rps)
        if self.routing is Routing.STICKY:
            utilization *= sticky_connections.imbalance(replicas, self.connections, self.unlucky)
        return self.full_s * self.curve(replicas).latency(utilization)

    @cached_property
    def idle_s(self) -> float:
        """The percentile of one request at an idle replica: no lower target can be met."""
        return self.cost.batch_s(1) * execution_percentile(
            min(LARGEST_CV, self.cost.cv), self.percentile
        )

    def capacity_rps(self, target_s: float, replicas: int) -> float:
        """Return the highest rate that each of `replicas` carries within the target; 0 without one.

        Never falls with N, except under STICKY, where only N times it never falls.
        """
        if self.idle_s > target_s:
            return 0.0
        utilization = self.curve(replicas).utilization(target_s / self.full_s)
        if self.routing is Routing.STICKY:
            utilization /= sticky_connections.imbalance(replicas, self.connections, self.unlucky)
        return utilization * self.full_rps

    def replicas_for(self, arrival_rps: float, target_s: float, margin: float) -> int | None:
        """Return the fewest replicas that meet the latency target; None if no number does.

        That is the least N with arrivals x margin / N <= capacity(N).

        The total capacity never falls with N, so the answer is found by bisection: between what
        full batches would need and what replicas with the capacity of a single one would. Under
        RANDOM the latter is the answer. Under STICKY the capacity of each falls with N; a replica
        more than there are connections would be idle, so no more are worth having.
        """
        wanted_rps = arrival_rps * margin
        if wanted_rps <= 0:
            return 0
        alone_rps = self.capacity_rps(target_s, 1)
        if alone_rps <= 0:
            return None
        high = max(1, math.ceil(wanted_rps / (alone_rps * (1 + _ROUNDING))))
        if self.routing is Routing.RANDOM:
            return high
        low = math.ceil(wanted_rps / self.full_rps * (1 - _ROUNDING)) - 1
        if self.routing is Routing.STICKY:
            low, high = 0, max(high, self.connections)
            if not self._carries(wanted_rps, target_s, high):
                return high
        return smallest(low, high, lambda replicas: self._carries(wanted_rps, target_s, replicas))

    def _carries(self, wanted_rps: float, target_s: float, replicas: int) -> bool:
        carried_rps = replicas * self.capacity_rps(target_s, replicas)
        return wanted_rps <= carried_rps * (1 + _ROUNDING)

    @cached_property
    def full_rps(self) -> float:
        """Throughput of one replica with full batches."""
        return self.cost.full_batch_rps

    @cached_property
    def full_s(self) -> float:
        """Time of a full batch."""
        return self.cost.batch_s(self.cost.max_batch)

    @cached_property
    def _shape(self) -> tuple[float, int, float]:
        """t0 / t(B), B and variation, in the steps for which curves are cached."""
        cost = self.cost
        batch = min(cost.max_batch, LARGEST_BATCH)
        share = 1.0
        if batch > 1:
            share = cost.fixed_s / self.full_s
            steps = math.floor(-math.log(share + (1 - share) / batch) / SHARE_STEP + _ROUNDING)
            share = min(1.0, (math.exp(-SHARE_STEP * steps) - 1 / batch) / (1 - 1 / batch))
        cv = min(LARGEST_CV, CV_STEP * math.ceil(cost.cv / CV_STEP - _ROUNDING))
        return share, batch, cv

    def curve(self, replicas: int, percentile: float | None = None) -> LoadCurve:
        """Return latency over t(B) against utilization, of the target percentile or another."""
        known = self._known_curves.get((replicas, percentile))
        if known is None:
            known = self._known_curves[replicas, percentile] = self._new_curve(replicas, percentile)
        return known

    @cached_property
    def _known_curves(self) -> dict[tuple[int, float | None], LoadCurve]:
        return {}

    def _new_curve(self, replicas: int, percentile: float | None) -> LoadCurve:
        share, batch, cv = self._shape
        sticky = self.routing is Routing.STICKY
        routing = Routing.RANDOM if sticky else self.routing
        if routing is Routing.RANDOM:
            replicas = 1
        level = percentile or self.percentile
        return _curve_of(share, batch, self.cost.slots, cv, level, routing, replicas)


@lru_cache(maxsize=4096)
def _curve_of(
    share: float,
    max_batch: int,
    slots: int,
    cv: float,
    percentile: float,
    routing: Routing,
    replicas: int,
) -> LoadCurve:
    if slots == 1:
        return latency_tables.fleet(share, max_batch, cv, percentile, routing, replicas)
    return slot_pool.fleet(share, max_batch, slots, cv, percentile, routing, replicas)
