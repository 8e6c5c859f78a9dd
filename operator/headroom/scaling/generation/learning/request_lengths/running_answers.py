"""Tokens of answers that still run: tokens per arrival beyond those of answers that end.

Tokens generated per arrival are the mean answer, however few have ended, because each answer counts
as far as it has come (rate conservation, Miyazawa 1994). Worked: one of 100 answers runs for twenty
minutes. After five of these none has ended: 320 tokens are generated per arrival, and those that
end have 215 on average.

Answers that clients give up are among what is generated, and not among those that end, so this
alone does not tell that longer ones run. The memory in use does, and shows for how long they have
run; but caches may count as in use. So each is the bound of the other (`SharedMemory.paired`).
"""

from __future__ import annotations

from headroom.scaling.generation.learning.request_lengths.length_steps import (
    SLOW_S,
    beyond_chance,
    by_chance,
)
from headroom.scaling.generation.learning.request_lengths.length_sums import (
    ARRIVED,
    GENERATED,
    LEAST_REQUESTS,
    OUTPUT,
    OUTPUTS,
    Sums,
)
from headroom.scaling.values.tokens import IterationCost


def unended_tokens(sums: Sums, cv: float) -> float:
    """Return the tokens per arrival of answers that still run, beyond chance.

    `cv` is how much the answers that end vary.
    """
    arrived, ended = sums[ARRIVED], sums[OUTPUTS]
    if min(arrived, ended) < LEAST_REQUESTS:
        return 0.0
    mean = sums[OUTPUT] / ended
    more = max(0.0, sums[GENERATED] / arrived - mean)
    return more * beyond_chance(more, by_chance(mean, cv, min(arrived, ended)))


def most_unended_squared(unended: float, accepted_per_step: float, cost: IterationCost) -> float:
    """Return by how much E[O^2] may be more with so many tokens per arrival of running answers.

    Those of the last SLOW_S are what they hold now, which is lambda E[O^2] / 2 times the time of a
    token; and no iteration takes less time than that of one sequence.
    """
    least_s = cost.iteration_s(0.0, 1.0, 0.0)
    return 2.0 * unended * SLOW_S * accepted_per_step / least_s if least_s > 0.0 else 0.0
