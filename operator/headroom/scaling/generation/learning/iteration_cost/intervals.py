"""Computes the mean iteration of each interval between two scrapes from a server's counters.

Seconds of the engine are the exact source. Without them the time between tokens, seen by the
sequences, is the time of an iteration; with neither, nothing can be learned. Sequences see no
iteration that computes their own prompt, only the prompts that come meanwhile: those of a second,
times the time between tokens. Worked: 15 requests per second of 1500 and 2 tokens, at 3 replicas
that take 23 ms: 170 prompt tokens, not the 750 of an iteration. What their own prompt takes is an
interval of its own where servers count the seconds of prompts. A replica that has just become
ready still compiles and fills its caches, so its first intervals are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from headroom.scaling.generation.counters.token_counters import LONGEST_S
from headroom.scaling.generation.counters.token_increase import Increase
from headroom.scaling.generation.counters.token_table import FIRST_BUCKET, FIRST_SUM, Count
from headroom.scaling.generation.learning.iteration_cost.mean_iterations import Intervals
from headroom.scaling.generation.replica_model.prompt_bursts import prompts_during_own
from headroom.scaling.generation.replica_model.work import DEFAULT_ITERATION_TOKENS, context_tokens
from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.mathematics.flags import all_set, any_set
from headroom.scaling.values.tokens import RequestShape

COLD_S = 30.0
_ROUNDING = 1.05
_ROUNDS = 6
"""Enough to find within 2 % how many prompts share an iteration."""
ENGINE_SECONDS = "engine seconds per iteration"
TOKEN_TIMES = "times between tokens"  # noqa: S105
EXACT_SUMS = "sums over iterations"


def warm(increase: Increase, ready_since_s: Mapping[str, float], now_s: float) -> Increase:
    """Return the increase without replicas that have become ready only just now."""
    since_s = np.array([ready_since_s.get(pod, now_s) for pod in increase.pods])
    chosen = now_s - since_s >= COLD_S + increase.elapsed_s
    return increase if all_set(chosen) else increase.chosen(chosen)


def joined(every: Sequence[Increase]) -> Increase:
    """Return the increases of several ticks as one, without histograms."""
    return Increase(
        pods=tuple(pod for one in every for pod in one.pods),
        elapsed_s=np.concatenate([one.elapsed_s for one in every]),
        added=np.concatenate([one.added[:, :FIRST_BUCKET] for one in every]),
        context_tokens=np.concatenate([one.context_tokens for one in every]),
    )


def exact_sums(increase: Increase) -> tuple[Vector, Vector] | None:
    """Return X'X [5, 5] and X'y [5] of all replicas; None where no server reports them."""
    sums = increase.added[:, FIRST_SUM:FIRST_BUCKET]
    if not any_set(np.isfinite(sums[:, 0])):
        return None
    known = np.isfinite(sums).all(axis=1)
    if not known.any():
        return None
    total = sums[known].sum(axis=0)
    inner = np.zeros((5, 5))
    inner[np.triu_indices(5)] = total[:15]
    inner = inner + np.triu(inner, 1).T
    return inner, total[15:]


def intervals_of(
    increase: Increase, shape: RequestShape, level: float = 1.0
) -> tuple[Intervals, str]:
    """Return the mean iterations, and from which counters; no interval where neither suffices.

    `level` replicas get their requests in turn.
    """
    added, elapsed_s = increase.added, increase.elapsed_s
    accepted = max(1.0, shape.accepted_per_step)
    steps = added[:, Count.STEPS]
    unknown = np.isnan(steps)
    if any_set(unknown):  # each request's first token comes with its prompt
        later = added[:, Count.GENERATED] - added[:, Count.ARRIVALS]
        steps = np.where(unknown, np.maximum(0.0, later) / accepted, steps)
    busy_s, iterations = added[:, Count.ENGINE_S], added[:, Count.ITERATIONS]
    untimed, uncounted = np.isnan(busy_s), np.isnan(iterations)
    with np.errstate(divide="ignore", invalid="ignore"):
        if any_set(untimed) or any_set(uncounted):
            token_s = added[:, Count.SEQUENCE_S] / steps
            iterations = np.where(uncounted, busy_s / token_s, iterations)
            busy_s = np.where(untimed, iterations * token_s, busy_s)
        prompts = added[:, Count.COMPUTED] / iterations
        if any_set(untimed):
            decoding = added[:, Count.SEQUENCE_S] / elapsed_s  # the number that come meanwhile
            seen = _other_prompts(decoding, decoding, level) * added[:, Count.COMPUTED] / steps
            prompts = np.where(untimed, np.minimum(prompts, seen), prompts)
        sequences = steps / iterations
        seconds = busy_s / iterations
    contexts, reported = increase.context_tokens, np.isfinite(increase.context_tokens)
    if not all_set(reported):
        contexts = np.where(reported, contexts, sequences * context_tokens(shape))
    usable = (busy_s <= _ROUNDING * elapsed_s) & (elapsed_s <= LONGEST_S)
    found = Intervals(
        iterations=iterations if all_set(usable) else np.where(usable, iterations, 0.0),
        seconds=seconds,
        prompt_tokens=prompts,
        sequences=sequences,
        context_tokens=contexts,
        products=prompts * _products_per_token(shape),
        prompt_share=-np.expm1(-np.maximum(prompts, 0.0) / chunk_tokens(shape)),
    )
    if not all_set(untimed):
        return found, ENGINE_SECONDS
    own = _of_prompts(increase, shape, float(np.nansum(steps)), level)
    return (found if own is None else found.joined(own)), TOKEN_TIMES


def _of_prompts(
    increase: Increase, shape: RequestShape, steps: float, level: float
) -> Intervals | None:
    """Return the mean iteration that computes a prompt, of all replicas; None where not reported.

    With the prompt it decodes the sequences that are there at any time, and computes what else has
    come while the iteration before was under way, if any was.
    """
    total = increase.reporting(Count.PROMPT_S).added.sum(axis=0)
    prompts, seconds = total[Count.TIMED_PROMPTS], total[Count.PROMPT_S]
    if not prompts > 0.0 or not seconds > 0.0:
        return None
    chunks = max(1.0, shape.computed_tokens / DEFAULT_ITERATION_TOKENS)
    step_s, elapsed_s = seconds / prompts / chunks, float(increase.elapsed_s.sum())
    sequences, computing = total[Count.SEQUENCE_S] / elapsed_s, seconds / elapsed_s
    token_s = min(step_s, total[Count.SEQUENCE_S] / max(steps, 1.0))
    busy = -math.expm1(-sequences - computing)

    others = 0.0
    for _ in range(_ROUNDS):
        under_way_s = _iteration_under_way_s(step_s, token_s, computing, others)
        number = np.array([prompts / elapsed_s * under_way_s])
        others = (others + busy * float(_other_prompts(number, sequences, level)[0])) / 2.0
    tokens = shape.computed_tokens * (1.0 + others) / chunks
    return Intervals(
        iterations=np.array([prompts * chunks]),
        seconds=np.array([step_s]),
        prompt_tokens=np.array([tokens]),
        sequences=np.array([sequences]),
        context_tokens=np.array([sequences * context_tokens(shape)]),
        products=np.array([tokens * _products_per_token(shape)]),
        prompt_share=np.ones(1),
    )


def _iteration_under_way_s(step_s: float, token_s: float, computing: float, others: float) -> float:
    """Return the time of the iteration that a prompt finds under way.

    `token_s` is the mean iteration, `step_s` one that computes prompts: of the time they are
    `computing` / E[prompts in one], because several may share an iteration. Longer ones are found
    more often. Worked: 14 prompts per second, 72 ms with a prompt, 37 ms on average: 55 ms.
    """
    share = min(1.0, computing * (-math.expm1(-others) / others if others > 0.0 else 1.0))
    prompt_iterations = share * token_s / step_s
    if prompt_iterations >= 1.0:
        return step_s
    plain_s = max(0.0, token_s - prompt_iterations * step_s) / (1.0 - prompt_iterations)
    return share * step_s + (1.0 - share) * plain_s


def _other_prompts(number: Vector, decoding: Vector | float, level: float) -> Vector:
    """Return how many other prompts a prompt meets, where `number` is the mean at any time.

    Level replicas take them in turn while few decode; among many, one that ends makes place for the
    next at once.
    """
    own = np.array([prompts_during_own(one, level) for one in number.tolist()])
    found: Vector = number - np.exp(-decoding) * (number - own)
    return found


def chunk_tokens(shape: RequestShape) -> float:
    """Return how many prompt tokens an iteration computes that computes any."""
    return min(max(1.0, shape.computed_tokens), float(DEFAULT_ITERATION_TOKENS))


def _products_per_token(shape: RequestShape) -> float:
    """Return X / P: of a chunk of n after `before` tokens it is before + n / 2."""
    prompt = max(1.0, shape.prompt_tokens)
    uncached = min(1.0, shape.computed_tokens / prompt)
    return shape.prompt_tokens_squared / prompt * (1.0 - uncached / 2.0)
