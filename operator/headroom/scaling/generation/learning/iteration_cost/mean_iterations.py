"""The mean iteration of each interval between two scrapes, as a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headroom.scaling.generation.learning.iteration_cost import experts, sums
from headroom.scaling.generation.learning.iteration_cost.ratios import Ratios
from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.mathematics.flags import Flags
from headroom.scaling.values.tokens import IterationCost


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Intervals:
    """The mean iteration of each interval; one entry per replica and scrape."""

    iterations: Vector
    seconds: Vector
    """Duration of one iteration."""
    prompt_tokens: Vector
    sequences: Vector
    context_tokens: Vector
    products: Vector
    prompt_share: Vector
    """Share of the iterations that compute a prompt."""

    def columns(self, ratios: Ratios) -> Vector:
        """Return [intervals, TERMS]: the factors of a, b, d and c."""
        columns = np.empty((len(self.iterations), sums.TERMS))
        columns[:, 0] = 1.0
        columns[:, 1] = self.prompt_tokens + ratios.product_per_prompt * self.products
        columns[:, 2] = self.sequences
        columns[:, 3] = self.context_tokens
        return columns

    def joined(self, other: Intervals) -> Intervals:
        """Return these intervals and others."""
        return Intervals(
            iterations=np.concatenate((self.iterations, other.iterations)),
            seconds=np.concatenate((self.seconds, other.seconds)),
            prompt_tokens=np.concatenate((self.prompt_tokens, other.prompt_tokens)),
            sequences=np.concatenate((self.sequences, other.sequences)),
            context_tokens=np.concatenate((self.context_tokens, other.context_tokens)),
            products=np.concatenate((self.products, other.products)),
            prompt_share=np.concatenate((self.prompt_share, other.prompt_share)),
        )

    def chosen(self, flags: Flags) -> Intervals:
        """Return the intervals with a flag."""
        return Intervals(
            iterations=self.iterations[flags],
            seconds=self.seconds[flags],
            prompt_tokens=self.prompt_tokens[flags],
            sequences=self.sequences[flags],
            context_tokens=self.context_tokens[flags],
            products=self.products[flags],
            prompt_share=self.prompt_share[flags],
        )

    def expected_s(self, columns: Vector, cost: IterationCost) -> Vector:
        """Return the seconds of an iteration by this cost."""
        parts = cost.fixed_s, cost.prompt_token_s, cost.sequence_s, cost.context_token_s
        seconds: Vector = columns @ np.array(parts)
        if cost.experts_s > 0.0:
            share = np.array([cost.expert_share])
            read = experts.touched(share, self.sequences, self.prompt_share)[:, 0]
            seconds = seconds + cost.experts_s * read
        return seconds
