"""Bound on the sequences of a replica in overload: they fit into memory, and get tokens in time.

In overload one begins whenever another ends, so that always N decode. Then

    tau(N) = a + s N          lambda(N) = N / (O tau(N) + w_p N)

answers per second end, and the time per token varies by the prompts alone (`output_token`). With
more sequences more answers end and fewer in time: lambda(N) P(time per token <= target) decides.
Worked: Llama 8B on an H100, prompts of 1500 and answers of 250 tokens within 50 ms per token, 1.5
times the capacity: among 214 sequences 2 % are late and the rest is all that the capacity allows;
among 238, as many as are there by chance at the capacity itself, it is 44 % of that.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from headroom.scaling.generation.replica_model.output_token import longest_s, time_per_step
from headroom.scaling.generation.replica_model.prompt_bursts import bursts_of
from headroom.scaling.generation.replica_model.work import Work
from headroom.scaling.mathematics.bisection import smallest

ENOUGH = 0.9
"""Share of the most answers in time: each sequence less is a rejected request, also where a peak by
chance would have been answered, and where prompts are uneven the model is too wide (15 % late
instead of 2 %). Simulated on five engines and four mixes: at 1.5 times the capacity all that it
allows is in time, at the capacity itself at most 2 % are rejected; with 1 up to 7 %."""
FEW_LATE = 0.97
"""Share in time at which fewer sequences are of no use."""


def most_in_memory(work: Work, tokens: float, percentile: float) -> int:
    """Return how many sequences hold at most this many tokens at this percentile.

    N contexts of c +- v tokens: N c + z v sqrt(N). Worked: 4373 +- 4074 tokens each in 123,500 at
    p95: 21 sequences; of 28, which fit on average, memory is nearly full two thirds of the time.
    """
    mean, spread = work.memory_tokens, NormalDist().inv_cdf(percentile)
    spread *= math.sqrt(work.context_variance)
    root = (math.sqrt(spread * spread + 4.0 * mean * tokens) - spread) / (2.0 * mean)
    return int(root * root)


def most_in_time(
    work: Work,
    target_s: float,
    output_cv: float,
    most: int,
    level: float = 1.0,
    iteration_tokens: int | None = None,
) -> int:
    """Return the number, 1 to `most`, for a target per iteration at one of `level` replicas.

    The largest with `ENOUGH` of the most answers in time, which grow with N and then fall.
    """

    def share_in_time(sequences: int) -> tuple[float, float]:
        answers_rps, share = rate_and_share_in_time(work, sequences, target_s, output_cv, level)
        in_time = longest_s(work, sequences, iteration_tokens) <= target_s
        return answers_rps, 1.0 if in_time else share

    def in_time_rps(sequences: int) -> float:
        return math.prod(share_in_time(sequences))

    if most <= 1 or share_in_time(most)[1] >= FEW_LATE:
        return most
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        if in_time_rps(middle + 1) > in_time_rps(middle):
            low = middle + 1
        else:
            high = middle
    best, enough_rps = low, ENOUGH * in_time_rps(low)
    return smallest(best, most + 1, lambda number: in_time_rps(number) < enough_rps) - 1


def rate_and_share_in_time(
    work: Work, sequences: int, target_s: float, output_cv: float, level: float = 1.0
) -> tuple[float, float]:
    """Return the answers per second of this many sequences, and their share within the target."""
    fixed_s = work.iteration_fixed_s(1.0 + sequences, sequences * work.chunks / work.steps)
    step_s = fixed_s + work.slope_s * sequences
    answers_rps = sequences / (work.steps * step_s + work.prompt_s * sequences)
    prompts = bursts_of(work, answers_rps, level)
    mean_s, cv = time_per_step(work, prompts, step_s, 0.0, output_cv)
    variance = math.log1p(cv * cv)
    if variance <= 0.0:
        return answers_rps, float(mean_s <= target_s)
    deviations = (math.log(target_s / mean_s) + variance / 2.0) / math.sqrt(variance)
    return answers_rps, 0.5 * math.erfc(-deviations / math.sqrt(2.0))
