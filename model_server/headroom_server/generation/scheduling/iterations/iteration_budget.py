"""The budget of an iteration for prompts, in tokens and in time. Pure."""

from __future__ import annotations

from headroom_server.generation.scheduling.costs.iteration_cost import IterationCost
from headroom_server.generation.scheduling.costs.pace import Pace
from headroom_server.generation.scheduling.sequences import LiveSequence

LEAST_CHUNK = 16
"""Smaller parts of a prompt are not worth an iteration's attention, unless nothing else runs."""


class IterationBudget:
    """The budget of one iteration for prompts; `tokens` may still be computed."""

    __slots__ = ("_cost", "chunks", "products", "prompt_tokens", "spent_s", "tokens")

    def __init__(self, cost: IterationCost, tokens: int) -> None:
        self._cost = cost
        self.tokens = tokens
        self.spent_s = 0.0
        self.chunks = 0
        """Chunks of prompts so far."""
        self.prompt_tokens = 0
        self.products = 0.0
        """The sum X of `iteration_cost`."""

    def size(self, sequence: LiveSequence, pace: Pace, *, alone: bool = False) -> int:
        """Return how many tokens of a prompt to compute now; 0: none.

        `alone`: nothing else is computed, so that even little is progress.
        """
        cost, before, left = self._cost, sequence.computed, sequence.remaining
        if left <= self.tokens and cost.prompt_s(left, before) <= pace.finishing_s - self.spent_s:
            return left
        size = min(self.tokens, cost.prompt_tokens_in(pace.partial_s - self.spent_s, before))
        if alone:
            size = max(size, min(LEAST_CHUNK, self.tokens))
        return min(left, int(size)) if size >= LEAST_CHUNK else 0

    def take(self, start: int, count: int) -> None:
        """Spend the cost of `count` tokens of a prompt after `start` others."""
        self.tokens -= count
        self.chunks += 1
        self.prompt_tokens += count
        self.products += count * (start + count / 2)
        self.spent_s += self._cost.prompt_s(count, start)
