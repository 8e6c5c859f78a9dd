"""The rates that a replica serves at most: engine, memory or seats full, and full with preemption.

Memory and seats full on average, without any promise:

    lambda_kv = K / (steps ctx a + K w)      lambda_seat = S / (steps a + S w)

A replica in front of which requests wait serves a little less: contexts that grow take memory from
each other, and what was preempted is computed again. Servers admit a request only if the whole of
it fits (vLLM's `scheduler_reserve_full_isl`, the default since March 2026), so little is lost: 76
saturated runs of the plant, five engines, served 0.90 to 1.06 of the lower rate (5th to 95th
percentile). Without that check they served 0.75 to 1.01, at worst half.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from headroom.scaling.frozen import cached_property
from headroom.scaling.generation.replica_model.work import Work
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.tokens import EngineLimits

SATURATED_SHARE = 0.95
USUAL_SEATS = 256
"""vLLM's --max-num-seqs; where a server reports none."""
_LEAST_S = 1e-9


@dataclass(frozen=True, kw_only=True)
class Rates:
    """The highest rates of one replica, whatever is promised."""

    work: Work
    limits: EngineLimits

    @cached_property
    def full_rps(self) -> float:
        """The rate at which the engine has no time left, with as few iterations as possible.

        Those that have place for its tokens: I + O of C each. Worked: 2000 tokens of a 32B take
        90 ms, but four iterations of 512, with 13 ms each that are fixed, are 142 ms.
        """
        work, place = self.work, self.limits.iteration_tokens
        request_s = work.request_s
        if place is not None:
            least = (work.prompt_tokens + work.steps) / place
            request_s += least * work.iteration_fixed_s(math.inf)
        return 1.0 / max(request_s, _LEAST_S)

    @cached_property
    def most_rps(self) -> float:
        """The rate at which memory or seats are full on average."""
        return min(self.full_rps, self.memory_rps, self.seats_rps)

    @property
    def saturated_rps(self) -> float:
        """The rate of a replica in front of which requests wait."""
        return SATURATED_SHARE * self.most_rps

    @cached_property
    def memory_rps(self) -> float:
        """The rate at which memory is full on average; inf without a limit."""
        tokens = self.limits.kv_tokens
        if tokens is None:
            return math.inf
        context = self._held_s * self.work.memory_tokens
        return tokens / max(context + tokens * self.work.request_s, _LEAST_S)

    @cached_property
    def seats_rps(self) -> float:
        """The rate at which seats are full on average; inf without a limit."""
        seats = self.limits.sequences
        if seats is None:
            return math.inf
        return seats / max(self._held_s + seats * self.work.request_s, _LEAST_S)

    @property
    def _held_s(self) -> float:
        return self.work.steps * self.work.iteration_fixed_s(math.inf)

    @property
    def as_batch(self) -> CostModel:
        """A batch that takes as many per second, for rules that compare the claims of replicas."""
        seats = self.limits.sequences or USUAL_SEATS
        return CostModel(fixed_s=0.0, per_item_s=1.0 / self.most_rps, max_batch=seats)
