"""Distribution of the sequences that decode at one replica, and of their tokens in memory.

Sequences that share an engine are a station with processor sharing, so only the mean of their
lengths matters, not the shape (Baskett et al. 1975). With n of them an iteration takes
tau(n) = (a + s n) / (1 - lambda w_p) seconds, where s is what one sequence adds and w_p the engine
time of a prompt, so

    P(n) ~ prod_{i=1..n} lambda (O / A) tau(i) / i

With q = lambda (O / A) / (1 - lambda w_p) and g = q s this is a negative binomial distribution of
r = a / s + 1 and g: mean (a + s) q / (1 - g), variance mean / (1 - g). Without s it is Poisson.
Worked: Llama 8B on an H100 (a 5.71 ms, s 0.2 ms), 1000 tokens, 1.5/s of 4000-token prompts
(w_p 75 ms): q = 1690/s, g = 0.338, mean 15.1, deviation 4.8.

Long contexts hold up all others, which is what makes s uneven (variation v of contexts, the share
h = g c ctx / s of an iteration). To first order around the mean, with composition that changes as
sequences end and a number that returns more slowly, by 1 - g:

    more sequences   g v (c ctx / s)^2 / (1 - g)
    Var n            + mean v h^2 / ((1 - g)(2 - g))
    Cov(n, contexts) mean v h / (2 - g)

Where c ctx is all of s, the variance of the tokens is E[ctx^2] mean / (1 - g). Prompts
(`prompt_bursts`) hold up all sequences too: each waits for those that are there when it begins, and
a variance of u per second makes Var n 1 + lambda u / (2 (1 - lambda w_p)^2) times as large.
Worked: 2.6/s of 4300 tokens (cv 1.5) and answers of 800 at the same engine: 46 sequences instead of
42, and a deviation of the tokens of 88 000 instead of 69 000; simulated, the memory of one replica
fills in 20 % of the time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

from headroom.scaling.frozen import cached_property
from headroom.scaling.generation.replica_model.prompt_bursts import PromptBursts, bursts_of
from headroom.scaling.generation.replica_model.work import Work

ROUNDS = 5
"""The expert term depends on the occupancy that follows from it."""


@dataclass(frozen=True, kw_only=True)
class Occupancy:
    """Decoding sequences at one replica at this rate; mean inf where they grow without bound.

    Several bounds ask for the same variances: each is computed once and kept.
    """

    work: Work
    arrival_rps: float
    fixed_s: float
    """Fixed time of an iteration, with experts."""
    mean: float
    growth: float
    """g: 1 is the limit of the engine's time."""
    prompts: PromptBursts
    """Bursts of a replica that is not kept level with others."""

    @cached_property
    def variance(self) -> float:
        """Variance of the number of sequences."""
        return self._of_number + self._of_contexts

    @cached_property
    def _of_number(self) -> float:
        """Variance of the number where all contexts are alike."""
        prompts = self.prompts
        bursts = self.arrival_rps * prompts.variance_per_s / (2.0 * (1.0 - prompts.share) ** 2)
        return self.mean * (1.0 + bursts) / (1.0 - self.growth)

    @cached_property
    def _of_contexts(self) -> float:
        """Because long contexts hold up all others."""
        growth, held_up = self.growth, self._held_up
        uneven = self.mean * self.work.context_variation
        return uneven * held_up * held_up / ((1.0 - growth) * (2.0 - growth))

    @cached_property
    def _held_up(self) -> float:
        """h: the share of an iteration that contexts take."""
        slope_s = self.work.slope_s
        return self.growth * self.work.context_slope_s / slope_s if slope_s > 0.0 else 0.0

    def sequences(self, percentile: float, pooled: float = 1.0) -> float:
        """Return this percentile of the number of sequences.

        Cornish and Fisher 1938, with the skewness of a negative binomial. `pooled` replicas that
        are kept level share the variation: each sees the deviation over its square root.
        """
        deviation = math.sqrt(self.variance / pooled)
        skew = (1.0 + self.growth) / math.sqrt(max(self.mean * (1.0 - self.growth), _LEAST))
        return self.mean + _above(deviation, skew / math.sqrt(pooled), percentile)

    def memory_tokens(self, percentile: float, pooled: float = 1.0) -> float:
        """Return this percentile of the tokens in memory: of sequences and the prompt in work.

        A random sum: contexts differ, and so does their number. `pooled` replicas are kept level
        in number only, so each has its own long contexts. Cumulants of the contexts are those of a
        gamma distribution. Worked: 20 contexts of 4500 +- 7000 tokens, five level replicas: the
        number adds 9 000 tokens of deviation to one replica, the lengths 31 000.
        """
        work, context = self.work, self.work.memory_tokens
        prompts = min(1.0, self.arrival_rps * work.prompt_s) * work.prompt_context_tokens
        mean = self.mean * context + prompts
        of_number, of_lengths = (
            self._of_number * context**2 / pooled,
            self.mean * work.context_variance,
        )
        skew = (1.0 + self.growth) / math.sqrt(max(self.mean * (1.0 - self.growth), _LEAST))
        third = skew * self._of_number**1.5 * context**3 / (pooled * pooled)
        third += of_lengths * (3.0 * context / pooled + 2.0 * work.context_variance / context)
        alike = max(of_number + of_lengths, _LEAST)
        together = 2.0 * of_lengths * self._held_up / (2.0 - self.growth)
        variance = alike + (self._of_contexts * context**2 + together) / pooled
        return mean + _above(math.sqrt(variance), third / alike**1.5, percentile)

    def iteration_s(self, sequences: float) -> float:
        """Return tau(n), with the share that prompts take."""
        free = 1.0 - self.arrival_rps * self.work.prompt_s
        return (self.fixed_s + self.work.slope_s * sequences) / free


_LEAST, _LEAST_S = 1e-3, 1e-12


@lru_cache(maxsize=512)
def occupancy_of(work: Work, arrival_rps: float) -> Occupancy | None:
    """Return the occupancy at this rate; None where the engine cannot keep up."""
    free = 1.0 - arrival_rps * work.prompt_s
    if free <= 0.0:
        return None
    per_s = arrival_rps * work.steps / free
    growth = per_s * work.slope_s
    if growth >= 1.0:
        return None
    mean, fixed_s = 0.0, work.fixed_s
    contexts = work.context_slope_s / max(work.slope_s, _LEAST_S)
    more = growth * work.context_variation * contexts**2 / (1.0 - growth)
    bursts = bursts_of(work, arrival_rps)
    more += arrival_rps * bursts.backlog_s / free
    for _ in range(ROUNDS if work.experts_s > 0.0 else 1):
        prompts = arrival_rps * work.chunks * (fixed_s + work.slope_s * mean) / free
        fixed_s = work.iteration_fixed_s(1.0 + mean, prompts)
        mean = (fixed_s + work.slope_s) * per_s / (1.0 - growth) + more
    return Occupancy(
        work=work,
        arrival_rps=arrival_rps,
        fixed_s=fixed_s,
        mean=mean,
        growth=growth,
        prompts=bursts,
    )


def longest_tokens(work: Work, percentile: float) -> float:
    """Return this percentile of the tokens of one context, with the cumulants of a gamma."""
    deviation = math.sqrt(work.context_variance)
    return work.context_tokens + _above(
        deviation, 2.0 * deviation / work.context_tokens, percentile
    )


def _above(deviation: float, skew: float, percentile: float) -> float:
    z = _deviations(percentile)
    return deviation * (z + skew * (z * z - 1.0) / 6.0)


@lru_cache(maxsize=64)
def _deviations(percentile: float) -> float:
    return NormalDist().inv_cdf(percentile)
