"""Learns the lengths of requests: of present arrivals, and of those of a longer time.

Sums over three time constants. The mean prompt follows what is computed, cached and waiting per
arrival, so it shows a change of mix at once; second moments and answers follow the lengths of ended
requests. A faster value counts by how far it differs from the slower one beyond chance.

A step of the prompts is one of the last seconds from the last minute. As soon as enough requests
have arrived since it began, the two fast sums forget what was before. Worked: 2100 and 8100 tokens
in turn, 4850 on average: a step that was extrapolated from that mean was taken for one to 11,600.

Where memory is full, sequences are preempted and their contexts computed again. Those tokens are no
prompts. Where servers count them, the requests that end count as those that arrive, with the known
share of their prompts computed, within `RECOMPUTED_S` after a preemption. Worked: a service with
prompts of 4300 tokens that preempts computes 17 600 per arrival, by which a replica would carry
0.3/s instead of 3/s. With the lengths from before it would carry too much, and go on to preempt.
"""

from __future__ import annotations

from dataclasses import dataclass

from headroom.scaling.frozen import cached_property, replace
from headroom.scaling.generation.counters.token_increase import Increase
from headroom.scaling.generation.counters.token_table import Count, Grid
from headroom.scaling.generation.learning.request_lengths.accepted_drafts import accepted
from headroom.scaling.generation.learning.request_lengths.length_increase import counts_once
from headroom.scaling.generation.learning.request_lengths.length_steps import (
    FAST_S,
    QUICK_S,
    SLOW_S,
    beyond_chance,
    by_chance,
    enough,
    is_step,
    without_before,
)
from headroom.scaling.generation.learning.request_lengths.length_sums import (
    ARRIVED,
    CACHED,
    COMPUTED,
    DRAFTS,
    EMPTY,
    GENERATED,
    LEAST_REQUESTS,
    OUTPUT,
    OUTPUT2,
    OUTPUTS,
    PROMPT,
    PROMPT2,
    PROMPTS,
    Sums,
    faded,
    sums_of,
    variation,
)
from headroom.scaling.generation.learning.request_lengths.running_answers import unended_tokens
from headroom.scaling.values.tokens import RequestShape

RECOMPUTED_S = 30.0
"""Preempted sequences are the next to be computed."""
UNKNOWN_CV = 1.0
"""Cv of lengths whose histogram is missing: exponential ones."""


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """Faded sums: requests and tokens, with their squares."""

    quick: Sums = EMPTY
    fast: Sums = EMPTY
    slow: Sums = EMPTY
    since: Sums = EMPTY
    """Since a step of the prompts began; empty without one."""
    recomputing_s: float = 0.0
    """For how long computed tokens still include contexts of preempted sequences."""

    def observe(self, increase: Increase, grid: Grid, elapsed_s: float) -> Lengths:
        """Return the sums with the counts since the last tick."""
        if not increase.pods or elapsed_s <= 0.0:
            return self
        total = increase.total
        left_s = max(0.0, self.recomputing_s - elapsed_s)
        if total[Count.PREEMPTIONS] > 0.0 and not counts_once(increase):
            left_s = RECOMPUTED_S
        added = sums_of(increase, total, grid)
        if left_s > 0.0:
            added[ARRIVED : CACHED + 1] = self._arrived(added[PROMPTS], added[PROMPT])
        if added[ARRIVED] + added[PROMPTS] + added[OUTPUTS] <= 0.0:
            return replace(self, recomputing_s=left_s)
        latest = Lengths(
            quick=faded(self.quick, added, elapsed_s / QUICK_S),
            fast=faded(self.fast, added, elapsed_s / FAST_S),
            slow=faded(self.slow, added, elapsed_s / SLOW_S),
            since=faded(self.since, added, elapsed_s / FAST_S),
            recomputing_s=left_s,
        )
        return latest._after_step()

    def _after_step(self) -> Lengths:
        """Return the sums without the time before a step, once enough has arrived since it."""
        cv = self._cv(PROMPT, PROMPT2, PROMPTS)
        if not is_step(self.quick, self.fast, cv):
            return replace(self, since=EMPTY)
        if not enough(self.since[ARRIVED], cv):
            return self
        quick, fast = (without_before(sums, self.since, cv) for sums in (self.quick, self.fast))
        return replace(self, quick=quick, fast=fast, since=EMPTY)

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
        output_cv = self._cv(OUTPUT, OUTPUT2, OUTPUTS)
        outputs = self._mean(OUTPUT, OUTPUTS, output_cv, OUTPUT2)
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
        outputs += self.unended_tokens
        return RequestShape(
            prompt_tokens=whole,
            computed_tokens=whole if computed is None else min(whole, computed),
            output_tokens=outputs,
            prompt_tokens_squared=self._squared(whole, prompt_cv),
            output_tokens_squared=outputs**2 * (1.0 + output_cv**2),
            prompt_output_product=whole * outputs,
            accepted_per_step=1.0
            + accepted(
                self.slow[DRAFTS:GENERATED], self.fast[DRAFTS:GENERATED], self.fast[OUTPUTS]
            ),
        )

    @cached_property
    def unended_tokens(self) -> float:
        """The tokens per arrival of answers that still run, beyond those of answers that end."""
        return unended_tokens(self.slow, self._cv(OUTPUT, OUTPUT2, OUTPUTS))

    def _mean(
        self, tokens: int, requests: int, cv: float, squares: int | None = None
    ) -> float | None:
        """Return the mean length of present arrivals.

        With `squares` its chance is judged by the variation of the latest lengths too, if that is
        more. Worked: 300 tokens of cv 5.9, and 117 answers of 1108 on average, four of which have
        20 000 tokens and more: three deviations are 500 by the usual variation, 1650 by their own.
        """
        if not self._seen(tokens, requests):
            return None
        found = mean = self.slow[tokens] / self.slow[requests]
        for sums in self._faster(requests, cv):
            latest = sums[tokens] / sums[requests]
            chance = by_chance(mean, cv, sums[requests])
            if squares is not None:
                own_cv = variation(sums, tokens, squares, requests) or 0.0
                chance = max(chance, by_chance(latest, own_cv, sums[requests]))
            found += (latest - found) * beyond_chance(latest - found, chance)
        return found

    def _faster(self, requests: int, cv: float) -> list[Sums]:
        """Return the faster sums with enough requests for a mean, the quickest last."""
        if self.fast[requests] < LEAST_REQUESTS:
            return []
        return [self.fast, self.quick] if enough(self.quick[requests], cv) else [self.fast]

    def _seen(self, tokens: int, requests: int) -> bool:
        return self.slow[requests] >= LEAST_REQUESTS and self.slow[tokens] > 0.0

    def _squared(self, mean: float, cv: float) -> float:
        """Return E[I^2] of prompts with this mean, by their usual variation or less.

        Less by the prompt that a token is part of, E[I^2] / E[I], which another mix of the same
        requests changes little. Worked: 90 % instead of 20 % have 9000 tokens (cv 0.6), the others
        300. Over both a token is in a prompt of 11 900, so 8130 vary by 0.68, as they do (0.71). By
        the variation over both, 1.4, a replica would carry half.
        """
        known = [self.slow, self.fast] if enough(self.fast[PROMPTS], cv) else [self.slow]
        around = [sums[PROMPT2] / sums[PROMPT] for sums in known if sums[PROMPT] > 0.0]
        usual = mean * (1.0 + cv * cv)
        return mean * (min(usual, max(mean, *around)) if around else usual)

    def _cv(self, tokens: int, squares: int, requests: int) -> float:
        """Return the variation of lengths, where their mean has moved that of the latest if less.

        Before and after a step together they vary more than either. Worked: half of them four times
        as long, cv 0.8 each: together 1.14, which makes 1.4 times the squares.
        """
        slow = variation(self.slow, tokens, squares, requests)
        if slow is None:
            return UNKNOWN_CV
        fast = variation(self.fast, tokens, squares, requests)
        if fast is None or not enough(self.fast[requests], slow):
            return slow
        mean = self.slow[tokens] / self.slow[requests]
        moved = self.fast[tokens] / self.fast[requests] - mean
        chance = by_chance(mean, slow, self.fast[requests])
        return slow + min(0.0, fast - slow) * beyond_chance(moved, chance)
