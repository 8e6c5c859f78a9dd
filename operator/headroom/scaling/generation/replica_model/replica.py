"""Model of one of several equal generating replicas at a rate: percentiles, memory, seats."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from headroom.scaling.frozen import cached_property
from headroom.scaling.generation.counters.spread import Alone, Spread
from headroom.scaling.generation.replica_model.first_token import first_token_s
from headroom.scaling.generation.replica_model.occupancy import (
    Occupancy,
    longest_tokens,
    occupancy_of,
)
from headroom.scaling.generation.replica_model.output_token import mean_and_cv, output_token_s
from headroom.scaling.generation.replica_model.rates import SATURATED_SHARE, Rates
from headroom.scaling.generation.replica_model.seats import seat_wait_s
from headroom.scaling.generation.replica_model.work import Work
from headroom.scaling.latency.load_curve import execution_percentile
from headroom.scaling.values.policy import Routing
from headroom.scaling.values.tokens import Binding, EngineLimits, Target, TokenTargets

MEMORY_SHARE = 0.88
"""Share of the KV tokens, at `MEMORY_PERCENTILE` of what sequences hold. At 0.94 a token-level
simulation preempts 101 of 4000 requests and the first token takes 1.7 s instead of 0.2 s; at 1.03
it takes 44 s; below 0.75 nothing is preempted."""
MEMORY_PERCENTILE = 0.99
"""Not that of the promises: a full memory is not one late request, but the begin of a queue that
may last for a start. Worked: at p95 two replicas of 130 000 tokens with prompts of 4300 +- 6600
fell behind within 20 minutes at a steady load, and stayed so for the 300 s of a start."""
WAITING_PERCENTILE = 0.95
"""Percentile of the wait for a seat where no promise says another."""
LONGEST_WAIT_S = 1.0
KEPT = 64
"""Percentiles of one replica, at the latest rates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TailFactors:
    """Measured over modelled percentiles, learned."""

    first_token: float = 1.0
    output_token: float = 1.0


@dataclass(frozen=True, kw_only=True)
class GeneratingReplica:
    """One of several equal replicas: its work, limits and promises."""

    work: Work
    limits: EngineLimits = field(default_factory=EngineLimits)
    targets: TokenTargets = field(default_factory=TokenTargets)
    factors: TailFactors = TailFactors()
    routing: Routing = Routing.RANDOM
    output_cv: float = 1.0
    """Coefficient of variation of the tokens of an answer."""
    memory_share: float = MEMORY_SHARE

    def uses(self, arrival_rps: float, replicas: int = 1) -> dict[Binding, float]:
        """Return for each bound which share of it this rate per replica uses; above 1: exceeded.

        The utilization is not among them: its ceiling is a rule of its own.
        """
        return {binding: self.use(binding, arrival_rps, replicas) for binding in self.bounds}

    def use(self, binding: Binding, arrival_rps: float, replicas: int = 1) -> float:
        """Return which share of one bound this rate per replica uses."""
        target = self.promised.get(binding)
        if target is not None:
            return (
                self.percentile_s(binding, target.percentile, arrival_rps, replicas)
                / target.seconds
            )
        occupancy = occupancy_of(self.work, arrival_rps)
        if occupancy is None:
            return math.inf
        if binding is Binding.MEMORY and self.limits.kv_tokens is not None:
            used = self.memory_tokens(occupancy, replicas)
            used /= max(self.memory_share * self.limits.kv_tokens, self._longest_tokens)
            return max(used, arrival_rps / (SATURATED_SHARE * self.rates.memory_rps))
        if binding is Binding.SEATS and self.limits.sequences is not None:
            first = self.targets.first_token or self.targets.latency
            percentile = first.percentile if first is not None else WAITING_PERCENTILE
            wait_s = seat_wait_s(occupancy, self.limits.sequences, percentile)
            waited = wait_s / (first.seconds if first is not None else LONGEST_WAIT_S)
            return max(waited, arrival_rps / (SATURATED_SHARE * self.rates.seats_rps))
        return 0.0

    def memory_tokens(self, occupancy: Occupancy, replicas: int = 1) -> float:
        """Return the tokens in memory, at `MEMORY_PERCENTILE`; at any rate one has to fit."""
        used = occupancy.memory_tokens(MEMORY_PERCENTILE, self.pooled(replicas))
        return max(used, self.work.context_tokens)

    @cached_property
    def _longest_tokens(self) -> float:
        """`MEMORY_PERCENTILE` of one context.

        Where it fills the memory alone more replicas do not help, and without this there would be
        no rate for which they are enough.
        """
        return longest_tokens(self.work, MEMORY_PERCENTILE)

    @cached_property
    def rates(self) -> Rates:
        """Highest rates of the replica."""
        return Rates(work=self.work, limits=self.limits)

    @cached_property
    def bounds(self) -> tuple[Binding, ...]:
        """Bounds on the rate; the cheapest to compute first."""
        known = {Binding.MEMORY: self.limits.kv_tokens, Binding.SEATS: self.limits.sequences}
        return (
            *(one for one, limit in known.items() if limit is not None and limit > 0),
            *self.promised,
        )

    @cached_property
    def promised(self) -> dict[Binding, Target]:
        """The promises by the time that they bound.

        Without one on the time per output token that too few answers have: of those of O tokens on
        average at most O - 1 have a second one (Markov). Worked: labels of one token each.
        """
        output = self.targets.output_token
        if output is not None and self.work.output_tokens - 1.0 <= 1.0 - output.percentile:
            output = None
        named = {
            Binding.TIME_PER_OUTPUT_TOKEN: output,
            Binding.TIME_TO_FIRST_TOKEN: self.targets.first_token,
            Binding.LATENCY: self.targets.latency,
        }
        return {binding: target for binding, target in named.items() if target is not None}

    def percentile_s(
        self, binding: Binding, percentile: float, arrival_rps: float, replicas: int = 1
    ) -> float:
        """Return the percentile of the promised time at this rate per replica; inf if overloaded.

        A tick asks several times at the present rate, so the latest are kept.
        """
        key = binding, percentile, arrival_rps, replicas
        known = self._percentiles.get(key)
        if known is None:
            if len(self._percentiles) >= KEPT:
                self._percentiles.clear()
            occupancy, known = occupancy_of(self.work, arrival_rps), math.inf
            if occupancy is not None:
                known = self._percentile_s(occupancy, binding, percentile, replicas)
            self._percentiles[key] = known
        return known

    @cached_property
    def _percentiles(self) -> dict[tuple[Binding, float, float, int], float]:
        return {}

    def _percentile_s(
        self, occupancy: Occupancy, binding: Binding, percentile: float, replicas: int
    ) -> float:
        first_s = token_s = 0.0
        if binding is not Binding.TIME_PER_OUTPUT_TOKEN:
            first_s = self.factors.first_token * first_token_s(
                occupancy, percentile, self.limits.iteration_tokens, replicas, self.routing
            )
        if binding is not Binding.TIME_TO_FIRST_TOKEN:
            pooled = self.pooled(replicas)
            step_s = output_token_s(
                occupancy, percentile, self.output_cv, pooled, self.limits.iteration_tokens
            )
            token_s = self.factors.output_token * step_s / self.work.accepted
        if binding is Binding.LATENCY:
            longer = max(1.0, execution_percentile(self.output_cv, percentile))
            token_s *= self.work.output_tokens * longer
        return first_s + token_s

    def spreads(self, arrival_rps: float, replicas: int) -> dict[Binding, Spread]:
        """Return the times of tokens to expect; none where the engine cannot keep up."""
        found: dict[Binding, Spread] = {}
        occupancy = occupancy_of(self.work, arrival_rps)
        if occupancy is None:
            return {}
        step_s, cv = mean_and_cv(occupancy, self.output_cv, self.pooled(replicas))
        token_s = self.factors.output_token * step_s / self.work.accepted
        found[Binding.TIME_PER_OUTPUT_TOKEN] = Spread(mean_s=token_s, cv=cv)
        first = Binding.TIME_TO_FIRST_TOKEN
        if (target := self.targets.first_token) is not None:
            median_s, tail_s = (self.floor_s(first, one) for one in (_MEDIAN, target.percentile))
            alone = Alone.through(median_s, tail_s, target.percentile)
            if alone is not None:
                found[first] = alone
        return found

    def floor_s(self, binding: Binding, percentile: float) -> float:
        """Return the percentile at an idle replica: no number of replicas keeps a lower one."""
        return self.percentile_s(binding, percentile, IDLE_RPS)

    def pooled(self, replicas: int) -> float:
        """Return how many replicas share the variation of the number of sequences."""
        return float(replicas) if self.routing.sees_load else 1.0


IDLE_RPS = 1e-6
_MEDIAN = 0.5
