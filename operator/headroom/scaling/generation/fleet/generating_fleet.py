"""The serving model of a generating service: several promises and bounds as one latency.

The decision compares one latency with one target. Here that latency is the target times the worst
share that any promise uses of its own target, and infinite where memory or seats do not suffice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from headroom.scaling.frozen import cached_property
from headroom.scaling.generation.replica_model.capacity import Capacity
from headroom.scaling.generation.replica_model.occupancy import occupancy_of
from headroom.scaling.generation.replica_model.replica import (
    IDLE_RPS,
    MEMORY_PERCENTILE,
    MEMORY_SHARE,
)
from headroom.scaling.mathematics.bisection import smallest
from headroom.scaling.values.tokens import Binding

_ROUNDING = 1e-9
LARGEST_DEPTH = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratingCost:
    """Capacity of one replica: denominators of utilization, saturation and queue bounds."""

    full_batch_rps: float
    max_batch: int
    """Requests that may wait: as many as their prompts are computed within the target."""
    slots: int = 1
    concurrency: float = 1.0
    """Requests that may circulate at one replica within all promises and its memory."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GeneratingFleet:
    """Percentiles and capacities of equal replicas that generate; compared as an object."""

    capacity: Capacity
    target_s: float
    """The target of the policy, which stands for all promises."""
    ready: int = 0
    """Replicas whose prefix caches the measured hits come from."""
    cold: Capacity | None = None
    """With one replica more, whose cache is empty; None where few tokens are cached."""
    of_class: str = ""
    """The class whose promises these are; empty: those of the service."""

    @cached_property
    def cost(self) -> GeneratingCost:
        """Capacity of a replica by its engine time: the denominator of the utilization."""
        return self._cost(self.capacity.full_rps)

    @cached_property
    def saturation(self) -> GeneratingCost:
        """Capacity of a replica with its memory and seats full."""
        return self._cost(self.capacity.most_rps)

    @cached_property
    def idle_s(self) -> float:
        """The latency of an idle replica, of the promises that one keeps."""
        return self.target_s * self._worst(IDLE_RPS, 1)

    def latency_s(self, arrival_rps: float, replicas: int) -> float:
        """Return the target times the worst share of a promise; inf if replicas are too few."""
        return self.target_s * self._worst(arrival_rps / max(1, replicas), replicas)

    def capacity_rps(self, target_s: float, replicas: int) -> float:
        """Return the highest rate that each of `replicas` carries within all bounds."""
        capacity = self.capacity
        if self.cold is not None and replicas > self.ready:
            capacity = self.cold
        return capacity.rps(target_s / self.target_s, replicas)

    def replicas_for(self, arrival_rps: float, target_s: float, margin: float) -> int | None:
        """Return the fewest replicas within all bounds; None if no number is.

        The capacity of each never falls with their number, so the answer is found by bisection:
        first among the ready replicas, then beyond them, where caches begin empty.
        """
        wanted_rps = arrival_rps * margin
        if wanted_rps <= 0.0:
            return 0
        low, high = 0, self.ready
        if self.cold is None or self._carried_rps(target_s, high) < wanted_rps:
            first = self.ready if self.cold is not None else 0
            alone_rps = (self.cold or self.capacity).rps(target_s / self.target_s, 1)
            if alone_rps <= 0.0:
                return None
            low, high = first, math.ceil(wanted_rps / alone_rps * (1.0 - _ROUNDING))
            high = max(low + 1, high)
            if not self.capacity.replica.routing.sees_load:
                return high
        return smallest(low, high, lambda n: wanted_rps <= self._carried_rps(target_s, n))

    def _carried_rps(self, target_s: float, replicas: int) -> float:
        return replicas * self.capacity_rps(target_s, max(1, replicas)) * (1.0 + _ROUNDING)

    def binds(self, replicas: int) -> str:
        """Return the limit that bounds the rate per replica, as text."""
        binding = self.capacity.binding(replicas)
        if binding is Binding.MEMORY:
            share, percentile = 100 * MEMORY_SHARE, 100 * MEMORY_PERCENTILE
            return f"memory binds: {share:.0f}% of the KV tokens at p{percentile:g}"
        if binding is Binding.SEATS:
            return f"seats bind: {self.capacity.replica.limits.sequences} sequences at once"
        target = self.capacity.replica.promised.get(binding) if binding is not None else None
        if target is None or binding is None:
            return "no promise binds"
        what = _NAMES[binding] + (f" of class {self.of_class}" if self.of_class else "")
        return f"{what} binds: p{100 * target.percentile:g} within {target.seconds:.3g}s"

    def memory_share(self, arrival_rps: float, replicas: int) -> float | None:
        """Return the share of the KV tokens in use at the 99th percentile; None if unknown."""
        replica = self.capacity.replica
        tokens = replica.limits.kv_tokens
        if Binding.MEMORY not in replica.bounds or tokens is None:
            return None
        occupancy = occupancy_of(replica.work, arrival_rps / max(1, replicas))
        if occupancy is None:
            return math.inf
        return replica.memory_tokens(occupancy, replicas) / tokens

    def _worst(self, arrival_rps: float, replicas: int) -> float:
        capacity = self.capacity
        worst, promised = 0.0, capacity.replica.promised
        for binding, use in capacity.replica.uses(arrival_rps, replicas).items():
            if binding in capacity.infeasible:
                continue
            if binding in promised:
                worst = max(worst, use)
            elif use > 1.0:
                return math.inf
        return worst

    def _cost(self, rate_rps: float) -> GeneratingCost:
        replica = self.capacity.replica
        first = replica.targets.first_token
        waits_s = first.seconds if first is not None else self.target_s
        depth = int(min(LARGEST_DEPTH, waits_s / max(replica.work.prompt_s, _LEAST_S)))
        return GeneratingCost(
            full_batch_rps=rate_rps,
            max_batch=max(1, depth),
            concurrency=_concurrency(self.capacity),
        )


_LEAST_S = 1e-9
_NAMES = {
    Binding.TIME_TO_FIRST_TOKEN: "the time to first token",
    Binding.TIME_PER_OUTPUT_TOKEN: "the time per output token",
    Binding.LATENCY: "the time of the whole answer",
}


def _concurrency(capacity: Capacity) -> float:
    """Return how many sequences may run at once within the time per token, memory and seats.

    The time per token allows those at its percentile at the highest rate within it.
    """
    replica = capacity.replica
    work, limits, targets = replica.work, replica.limits, replica.targets
    most = [float(LARGEST_DEPTH)]
    if limits.sequences is not None:
        most.append(float(limits.sequences))
    if limits.kv_tokens is not None:
        most.append(replica.memory_share * limits.kv_tokens / work.memory_tokens)
    bound_rps = capacity.by_bound(1).get(Binding.TIME_PER_OUTPUT_TOKEN)
    occupancy = occupancy_of(work, bound_rps) if bound_rps is not None else None
    if occupancy is not None and targets.output_token is not None:
        most.append(occupancy.sequences(targets.output_token.percentile))
    return max(1.0, min(most))
