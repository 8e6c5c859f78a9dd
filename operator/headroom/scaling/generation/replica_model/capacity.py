"""The rate that each replica carries within every bound, and which bound that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headroom.scaling.frozen import cached_property
from headroom.scaling.generation.replica_model.replica import GeneratingReplica
from headroom.scaling.values.tokens import Binding

PRECISION = 5e-4
"""Relative error of a capacity."""
STEPS = 26
"""Halvings at most: below that share of the rate of a busy engine nothing is carried."""
POOLS = (1, 2, 4, 8, 16, 32, 64)
"""Capacities are computed for this many replicas; between them, for the fewer."""
OWN_SHARE, LEAST_LOAD = 0.75, 0.4
"""Share of a promise beyond which an idle replica's latency is mostly the request's own length, and
the load up to which late first tokens then add no replicas. If replicas do help, the learned margin
finds it. Worked: prompts that take 2.7 s of 3 s at p95 would need 16 % of load."""


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """The rates that one of several replicas carries; each is computed once and kept."""

    replica: GeneratingReplica

    @property
    def full_rps(self) -> float:
        """1 / w: the rate at which the engine has no time left for the fixed part."""
        return self.replica.rates.full_rps

    @property
    def most_rps(self) -> float:
        """The rate without any promise, memory and seats full on average."""
        return self.replica.rates.most_rps

    @property
    def saturated_rps(self) -> float:
        """The rate of a replica whose memory is full and stays so while requests wait."""
        return self.replica.rates.saturated_rps

    @cached_property
    def floors_s(self) -> dict[Binding, float]:
        """The promised percentiles at an idle replica."""
        return {
            binding: self.replica.floor_s(binding, target.percentile)
            for binding, target in self.replica.promised.items()
        }

    @cached_property
    def infeasible(self) -> frozenset[Binding]:
        """Promises that even an idle replica breaks: more replicas would not help."""
        return frozenset(
            binding
            for binding, target in self.replica.promised.items()
            if self.floors_s[binding] > target.seconds
        )

    def rps(self, ratio: float, replicas: int) -> float:
        """Return the rate that each of this many replicas carries within every bound.

        Promises at `ratio` of their targets; one that is infeasible is left out.
        """
        pool = self._pool(replicas)
        known = self._known.get((ratio, pool))
        if known is None:
            bounds = [one for one in self.replica.bounds if one not in self.infeasible]
            known = self._known[ratio, pool] = self._search(ratio, pool, bounds)
        return known

    def by_bound(self, replicas: int) -> dict[Binding, float]:
        """Return the rate of each of this many replicas within every bound alone."""
        pool = self._pool(replicas)
        known = self._bounds.get(pool)
        if known is None:
            bounds = [one for one in self.replica.bounds if one not in self.infeasible]
            known = {one: self._search(1.0, pool, [one]) for one in bounds}
            self._bounds[pool] = known
        return known

    def binding(self, replicas: int) -> Binding | None:
        """Return the bound with the lowest rate; None without any."""
        bounds = self.by_bound(replicas)
        return min(bounds, key=lambda one: bounds[one], default=None)

    def _pool(self, replicas: int) -> int:
        if not self.replica.routing.sees_load:
            return 1
        return max(size for size in POOLS if size <= max(1, replicas))

    def _search(self, ratio: float, pool: int, bounds: Sequence[Binding]) -> float:
        """Return the highest rate within the bounds by bisection: every use grows with the rate."""
        low, high = 0.0, self.full_rps
        most = [(one, ratio if one in self.replica.promised else 1.0) for one in bounds]
        idle_rps = {one: LEAST_LOAD * self.full_rps for one in bounds if self.by_length(one)}
        for _ in range(STEPS):
            middle = (low + high) / 2.0
            within = all(
                middle <= idle_rps.get(one, 0.0) or self.replica.use(one, middle, pool) <= limit
                for one, limit in most
            )
            low, high = (middle, high) if within else (low, middle)
            if high - low <= PRECISION * low:
                break
        return low

    def by_length(self, binding: Binding) -> bool:
        """Return whether the request alone takes most of the time that a promise allows."""
        target = self.replica.promised.get(binding)
        if target is None or binding is Binding.TIME_PER_OUTPUT_TOKEN:
            return False
        return self.floors_s[binding] > OWN_SHARE * target.seconds

    @cached_property
    def _known(self) -> dict[tuple[float, int], float]:
        return {}

    @cached_property
    def _bounds(self) -> dict[int, dict[Binding, float]]:
        return {}
