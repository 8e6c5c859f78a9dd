"""The time of an iteration, learned online. Pure.

    t = a + b P + d D + c KV + e X        P: tokens of prompts (and drafts) computed
                                          D: sequences decoded
                                          KV: tokens in the contexts of those
                                          X: sum of n (before + n / 2) over chunks of n tokens

The five terms explain measured kernels within 4 to 6 % (mean absolute error) on H100, H200, A100
and L40S. The fit minimizes relative errors: every iteration has weight 1 / t^2, and counts `FORGET`
times the next one (`cost_sums` solves it).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from headroom_server.generation.scheduling.costs.cost_sums import CostSums
from headroom_server.generation.values import Iteration

FORGET = 0.997
"""Weight of an iteration relative to the next one: the last 330 hold 63 % of the weight."""
REFIT = 16
"""Iterations between two solutions of the normal equations, once there are as many."""
LEAST_SEEN = 4
"""Iterations before anything is predicted."""
OUTLIER = 3.0
"""An iteration counts as at most this many times slower than expected."""


class Features(NamedTuple):
    """Work of an iteration, as the terms of its time."""

    prompt_tokens: int = 0
    decodes: int = 0
    context_tokens: int = 0
    products: float = 0.0

    def row(self) -> tuple[float, ...]:
        """Return the row of the regression, with the constant first."""
        return (1.0, *map(float, self))


def features_of(iteration: Iteration) -> Features:
    """Return the features of an iteration that was not planned here (warm-up)."""
    prompt_tokens = decodes = context_tokens = 0
    products = 0.0
    for chunk in iteration.chunks:
        length, extra = len(chunk.tokens), chunk.drafts
        if chunk.samples and chunk.start and length == extra + 1:
            decodes += 1
            context_tokens += chunk.start + 1
        else:
            extra = length
        prompt_tokens += extra
        products += extra * (chunk.start + extra / 2)
    return Features(prompt_tokens, decodes, context_tokens, products)


class IterationCost:
    """The learned cost. All times are 0 until the first iteration."""

    __slots__ = ("_since", "_sums", "base_s", "fastest_s", "known", "per_context_s", "per_decode_s",
                 "per_product_s", "per_token_s", "seen", "tail")  # fmt: skip

    def __init__(self) -> None:
        self._sums = CostSums()
        self._since = 0
        self.seen = 0
        self.known = False
        """Whether enough iterations were seen to predict."""
        self.base_s = self.per_token_s = self.per_decode_s = 0.0
        self.per_context_s = self.per_product_s = 0.0
        self.fastest_s = 0.0
        """The shortest iteration ever: no first token comes sooner."""
        self.tail = 0.0
        """Recent mean of the relative error's size."""

    def learn(self, features: Features, seconds: float) -> None:
        """Add an iteration of warm-up: the first requests are predicted from all of them."""
        self.observe(features, seconds)
        self._solve()

    def observe(self, features: Features, seconds: float) -> None:
        """Add an iteration."""
        if seconds <= 0.0:
            return
        if seconds < self.fastest_s or not self.fastest_s:
            self.fastest_s = seconds
        expected_s = self.seconds(features)
        if self.known and expected_s > 0.0:
            self.tail += 0.02 * (min(1.0, abs(seconds / expected_s - 1.0)) - self.tail)
            seconds = min(seconds, OUTLIER * expected_s)
        self._sums.add(features.row(), seconds, 1.0 / (seconds * seconds), FORGET)
        self.seen += 1
        self._since += 1
        # at the 1st, 2nd, 4th, 8th, 16th, and then every 16th
        if self._since >= min(REFIT, self.seen - self._since):
            self._solve()

    def _solve(self) -> None:
        self._since = 0
        (self.base_s, self.per_token_s, self.per_decode_s,
         self.per_context_s, self.per_product_s) = self._sums.solve()  # fmt: skip
        self.known = self.seen >= LEAST_SEEN

    def seconds(self, features: Features) -> float:
        """Return the expected time of an iteration."""
        return (
            self.base_s
            + self.per_token_s * features.prompt_tokens
            + self.per_decode_s * features.decodes
            + self.per_context_s * features.context_tokens
            + self.per_product_s * features.products
        )

    def prompt_s(self, tokens: int, before: int = 0) -> float:
        """Return the time that tokens of a prompt add after `before` others."""
        return tokens * (self.per_token_s + self.per_product_s * (before + tokens / 2))

    def prompt_tokens_in(self, seconds: float, before: int) -> float:
        """Return how many tokens of a prompt add this time: the inverse of `prompt_s`."""
        linear = self.per_token_s + self.per_product_s * before
        if seconds <= 0.0:
            return 0.0
        root = math.sqrt(linear * linear + 2.0 * self.per_product_s * seconds)
        return 2.0 * seconds / (linear + root) if linear + root > 0.0 else math.inf
