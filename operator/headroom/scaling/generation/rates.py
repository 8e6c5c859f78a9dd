"""The rates that a replica serves at most: engine, memory or seats full, and full with preemption.

Memory and seats full on average, without any promise:

    lambda_kv = K / (steps ctx a + K w)      lambda_seat = S / (steps a + S w)

A replica in front of which requests wait serves less. Its memory is full, so contexts that grow
take it from each other, and what was preempted is computed again. The more steps a sequence takes
(O / A), the fewer fit (n = K / ctx) and the more their lengths differ (cv), the more is lost:

    lambda_sat = lambda_kv / (1 + RECOMPUTED O/A / n cv^2 lambda_kv w_p)

Fitted to 76 saturated runs of the plant, five engines: 5 % rms, -14..+11 %. At a higher rate than
this one a replica works well until its memory is full once, by chance, and then never again: its
queue grows although its arrivals are those of the hour before. Worked: Llama 8B on an H100, prompts
of 4300 tokens (cv 1.0), answers of 800: lambda_kv 3.2/s, memory at p99 allows 2.8/s, and 2.3/s is
what a full replica serves. Two at 2.8/s each answered 5 % in time over two hours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from headroom.scaling.generation.work import Work
from headroom.scaling.token_values import EngineLimits

RECOMPUTED = 0.145
_LEAST_S = 1e-9


@dataclass(frozen=True, kw_only=True)
class Rates:
    """The highest rates of one replica, whatever is promised."""

    work: Work
    limits: EngineLimits

    @property
    def full_rps(self) -> float:
        """1 / w: the rate at which the engine has no time left for the fixed part."""
        return 1.0 / max(self.work.request_s, _LEAST_S)

    @cached_property
    def most_rps(self) -> float:
        """The rate at which memory or seats are full on average."""
        return min(self.full_rps, self._memory_rps, self._seats_rps)

    @cached_property
    def saturated_rps(self) -> float:
        """The rate of a replica in front of which requests wait."""
        work, tokens = self.work, self.limits.kv_tokens
        if tokens is None or not tokens > 0.0 or self._memory_rps > self.most_rps:
            return self.most_rps
        crowded = work.steps * work.context_tokens / tokens
        again = RECOMPUTED * crowded * work.prompt_cv**2 * self.most_rps * work.prompt_s
        return self.most_rps / (1.0 + again)

    @property
    def _memory_rps(self) -> float:
        tokens = self.limits.kv_tokens
        if tokens is None:
            return math.inf
        context = self._held_s * self.work.context_tokens
        return tokens / max(context + tokens * self.work.request_s, _LEAST_S)

    @property
    def _seats_rps(self) -> float:
        seats = self.limits.sequences
        if seats is None:
            return math.inf
        return seats / max(self._held_s + seats * self.work.request_s, _LEAST_S)

    @property
    def _held_s(self) -> float:
        return self.work.steps * self.work.iteration_fixed_s(math.inf)
