"""Bound on the requests in flight at a gateway per ready replica, so that all are in time.

As many as are there by chance at the highest rate that a replica carries, at most those that fit,
and what begins within a share of the time to first token. Overload keeps as many there all the
time, so fewer if they would fill the memory or not get their tokens in time (`overload`).
"""

from __future__ import annotations

import math
from functools import lru_cache

from headroom.scaling.generation.fleet.generating_fleet import LARGEST_DEPTH, GeneratingFleet
from headroom.scaling.generation.replica_model.occupancy import occupancy_of
from headroom.scaling.generation.replica_model.output_token import longest_s
from headroom.scaling.generation.replica_model.overload import most_in_memory, most_in_time
from headroom.scaling.generation.replica_model.replica import GeneratingReplica
from headroom.scaling.latency.load_curve import execution_percentile
from headroom.scaling.values.tokens import Binding

LEAST_IN_FLIGHT = 2
BY_CHANCE = 0.999
FULL_SHARE = 0.95
"""Share of the KV tokens: beyond it growing sequences preempt others."""
SELDOM_FULL = 0.95
"""Share of the time in which less is in use: more would reject what the memory allows."""
WAITING_SHARE = 0.5
"""Share of the time to first token, in which a queue that the gateway admits is worked off."""


@lru_cache(maxsize=1024)
def most_in_flight(fleet: GeneratingFleet, replicas: int) -> int:
    """Return the number per replica where this many are ready, at least 2."""
    replica, rate_rps = fleet.capacity.replica, fleet.capacity_rps(fleet.target_s, replicas)
    occupancy = occupancy_of(replica.work, rate_rps)
    if occupancy is None:
        return LARGEST_DEPTH
    first = replica.targets.first_token
    inside = min(occupancy.sequences(BY_CHANCE), fleet.cost.concurrency)
    waits_s = WAITING_SHARE * (first.seconds if first is not None else fleet.target_s)
    most = max(LEAST_IN_FLIGHT, math.ceil(inside + waits_s * rate_rps))
    if first is not None:
        most = min(most, _most_with_prompts(replica, first.seconds))
    tokens = replica.limits.kv_tokens
    if tokens is not None:
        most = min(most, most_in_memory(replica.work, FULL_SHARE * tokens, SELDOM_FULL))
    for binding in _TOKENS - fleet.capacity.infeasible:
        if fleet.capacity.by_length(binding):  # a few would be as late: by their own lengths
            continue
        most = min(most, _most_in_time(replica, binding, most, replicas))
    return max(LEAST_IN_FLIGHT, most)


_TOKENS = frozenset((Binding.TIME_PER_OUTPUT_TOKEN, Binding.LATENCY))
"""Promises on the time between tokens."""


def _most_with_prompts(replica: GeneratingReplica, first_s: float) -> int:
    """Return how many may always be there where all iterations are full of prompts.

    Those that decode then, and prompts that are computed within the share of the target. Worked:
    512 tokens per iteration, prompts of 2000 and answers of 20: 12 within 2 s. With the 24 that are
    there by chance half of the answers are late at 1.15 times the capacity, not a tenth.
    """
    work, tokens = replica.work, replica.limits.iteration_tokens
    if tokens is None:
        return LARGEST_DEPTH
    full_rps, answer_s = replica.rates.full_rps, work.steps * longest_s(work, 1.0, tokens)
    return min(LARGEST_DEPTH, math.ceil(full_rps * (answer_s + WAITING_SHARE * first_s)))


def _most_in_time(replica: GeneratingReplica, binding: Binding, most: int, replicas: int) -> int:
    """Return how many sequences may always run within one promise."""
    work, target = replica.work, replica.promised.get(binding)
    if target is None:
        return most
    step_s = target.seconds * work.accepted
    if binding is Binding.LATENCY:
        longer = execution_percentile(replica.output_cv, target.percentile)
        step_s = (target.seconds - work.prompt_s) / (work.steps * max(1.0, longer))
    if step_s <= 0.0:  # late by its prompt alone: fewer sequences would not help
        return most
    return most_in_time(
        work,
        step_s / replica.factors.output_token,
        replica.output_cv,
        most,
        replica.pooled(replicas),
        replica.limits.iteration_tokens,
    )
