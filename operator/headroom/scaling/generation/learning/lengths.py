"""Learns the lengths of requests: what arrives now, and what has arrived for a while.

Sums over three time constants. The mean prompt follows what is computed, cached and waiting per
arrival, so it shows a change of mix at once; second moments and answers follow the lengths of ended
requests. A faster value counts by how far it differs from the slower one beyond chance, and the two
fast ones together show how high a step of the prompts is before they have followed it.

Where memory is full, sequences are preempted and their contexts computed again. Those tokens are no
prompts. Where servers count them, the requests that end count as those that arrive, with the known
share of their prompts computed, within `RECOMPUTED_S` after a preemption. Worked: a service with
prompts of 4300 tokens that preempts computes 17 600 per arrival, by which a replica would carry
0.3/s instead of 3/s. With the lengths from before it would carry too much, and go on to preempt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from headroom.scaling.frozen import cached_property, replace
from headroom.scaling.generation.counters.length_moments import moments
from headroom.scaling.generation.counters.token_increase import Increase
from headroom.scaling.generation.counters.token_table import FIRST_SUM, Count, Grid
from headroom.scaling.generation.learning.accepted_drafts import accepted
from headroom.scaling.generation.learning.length_increase import (
    arrivals,
    counts_once,
    decoding_steps,
)
from headroom.scaling.generation.learning.length_steps import (
    FAST_S,
    QUICK_S,
    SLOW_S,
    ahead,
    beyond_chance,
)
from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.values.tokens import RequestShape

LEAST_REQUESTS = 5.0
"""Fewer requests are no mean."""
LEAST_QUICK = 50.0
"""Times 1 + cv^2: nor are so few in seconds, because some prompts are many times as long as others.
Worked: 68 requests of cv 0.6, 134 of cv 1.3."""
DEVIATIONS = 3.0
RECOMPUTED_S = 30.0
"""Preempted sequences are the next to be computed."""
UNKNOWN_CV = 1.0
"""Cv of lengths whose histogram is missing: exponential ones."""

ARRIVED, COMPUTED, CACHED, PROMPTS, PROMPT, PROMPT2, OUTPUTS, OUTPUT, OUTPUT2, DRAFTS, ACCEPTED = (
    range(11)
)
WIDTH = 11


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """Faded sums: requests and tokens, with their squares."""

    quick: tuple[float, ...] = (0.0,) * WIDTH
    fast: tuple[float, ...] = (0.0,) * WIDTH
    slow: tuple[float, ...] = (0.0,) * WIDTH
    recomputing_s: float = 0.0
    """For how long computed tokens still include contexts of preempted sequences."""

    def observe(self, increase: Increase, grid: Grid, elapsed_s: float) -> Lengths:
        """Return the sums with what was counted since the last tick."""
        if not increase.pods or elapsed_s <= 0.0:
            return self
        total = increase.total
        left_s = max(0.0, self.recomputing_s - elapsed_s)
        if total[Count.PREEMPTIONS] > 0.0 and not counts_once(increase):
            left_s = RECOMPUTED_S
        added = _sums(increase, total, grid)
        if left_s > 0.0:
            added[ARRIVED : CACHED + 1] = self._arrived(added[PROMPTS], added[PROMPT])
        if added[ARRIVED] + added[PROMPTS] + added[OUTPUTS] <= 0.0:
            return replace(self, recomputing_s=left_s)
        return Lengths(
            quick=_faded(self.quick, added, elapsed_s / QUICK_S),
            fast=_faded(self.fast, added, elapsed_s / FAST_S),
            slow=_faded(self.slow, added, elapsed_s / SLOW_S),
            recomputing_s=left_s,
        )

    def _arrived(self, requests: float, tokens: float) -> tuple[float, float, float]:
        """Return ended requests as arrivals, with computed and cached tokens where these are known.

        None of both before the first computed tokens: until then the shape follows what has ended.
        """
        shape = self.shape
        if shape is None or self.slow[COMPUTED] <= 0.0:
            return 0.0, 0.0, 0.0
        computed = tokens * shape.computed_tokens / shape.prompt_tokens
        return requests, computed, tokens - computed if self.slow[CACHED] > 0.0 else 0.0

    @property
    def known(self) -> bool:
        """Whether there is a shape: enough requests have ended, or arrived."""
        return self._seen(OUTPUT, OUTPUTS) and (
            self._seen(COMPUTED, ARRIVED) or self._seen(PROMPT, PROMPTS)
        )

    @cached_property
    def shape(self) -> RequestShape | None:
        """The lengths; None before enough requests."""
        outputs = self._mean(OUTPUT, OUTPUTS, self._cv(OUTPUT, OUTPUT2, OUTPUTS))
        prompt_cv = self._cv(PROMPT, PROMPT2, PROMPTS)
        computed = self._mean(COMPUTED, ARRIVED, prompt_cv)
        whole = self._mean(PROMPT, PROMPTS, prompt_cv)
        if self.slow[CACHED] > 0.0 and computed is not None:
            cached = self._mean(CACHED, ARRIVED, prompt_cv) or 0.0
            whole = computed + cached
        elif computed is not None:
            whole = max(computed, whole or 0.0)
        if outputs is None or whole is None:
            return None
        output_cv = self._cv(OUTPUT, OUTPUT2, OUTPUTS)
        return RequestShape(
            prompt_tokens=whole,
            computed_tokens=whole if computed is None else min(whole, computed),
            output_tokens=outputs,
            prompt_tokens_squared=whole**2 * (1.0 + prompt_cv**2),
            output_tokens_squared=outputs**2 * (1.0 + output_cv**2),
            prompt_output_product=whole * outputs,
            accepted_per_step=1.0
            + accepted(self.slow[DRAFTS:WIDTH], self.fast[DRAFTS:WIDTH], self.fast[OUTPUTS]),
        )

    def _mean(self, tokens: int, requests: int, cv: float) -> float | None:
        if not self._seen(tokens, requests):
            return None
        mean = self.slow[tokens] / self.slow[requests]
        found = known = mean
        for sums, least in (
            (self.fast, LEAST_REQUESTS),
            (self.quick, LEAST_QUICK * (1.0 + cv * cv)),
        ):
            if sums[requests] < least:
                break
            latest = sums[tokens] / sums[requests]
            if sums is self.quick and requests == ARRIVED:  # answers that end are no step
                latest = mean + (latest - mean) * ahead(latest - mean, known - mean)
            known = latest
            chance = DEVIATIONS * max(_LEAST_CV, cv) * mean / math.sqrt(sums[requests])
            found += (latest - found) * beyond_chance(latest - found, chance)
        return found

    def _seen(self, tokens: int, requests: int) -> bool:
        return self.slow[requests] >= LEAST_REQUESTS and self.slow[tokens] > 0.0

    def _cv(self, tokens: int, squares: int, requests: int) -> float:
        """Return the variation of lengths, where their mean has moved that of the latest if less.

        Before and after a step together they vary more than either. Worked: half of them four times
        as long, cv 0.8 each: together 1.14, which makes 1.4 times the squares.
        """
        slow = _variation(self.slow, tokens, squares, requests)
        if slow is None:
            return UNKNOWN_CV
        fast = _variation(self.fast, tokens, squares, requests)
        if fast is None or self.fast[requests] < LEAST_QUICK * (1.0 + slow * slow):
            return slow
        mean = self.slow[tokens] / self.slow[requests]
        moved = self.fast[tokens] / self.fast[requests] - mean
        chance = DEVIATIONS * max(_LEAST_CV, slow) * mean / math.sqrt(self.fast[requests])
        return slow + min(0.0, fast - slow) * beyond_chance(moved, chance)


def _variation(sums: Sequence[float], tokens: int, squares: int, requests: int) -> float | None:
    """Return the coefficient of variation; None before enough requests."""
    count, total = sums[requests], sums[tokens]
    if count < LEAST_REQUESTS or total <= 0.0 or sums[squares] <= 0.0:
        return None
    return math.sqrt(max(0.0, sums[squares] * count / (total * total) - 1.0))


_LEAST_CV = 0.05


def _sums(increase: Increase, total: Vector, grid: Grid) -> list[float]:
    """Return what an interval adds."""
    prompts, outputs, _, _ = grid.slices()
    added, counts = [0.0] * WIDTH, total[:FIRST_SUM].tolist()
    added[ARRIVED : CACHED + 1] = arrivals(increase, grid)
    added[PROMPTS : PROMPT2 + 1] = moments(grid.prompt, total[prompts], counts[Count.PROMPT_TOTAL])
    added[OUTPUTS : OUTPUT2 + 1] = moments(grid.output, total[outputs], counts[Count.OUTPUT_TOTAL])
    added[DRAFTS : ACCEPTED + 1] = decoding_steps(counts)
    return added


def _faded(
    before: tuple[float, ...], added: Sequence[float], constants: float
) -> tuple[float, ...]:
    fade = math.exp(-constants)
    return tuple([fade * old + new for old, new in zip(before, added, strict=True)])
