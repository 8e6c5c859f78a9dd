"""Counts of generation since the process started, next to those of its requests. Pure."""

from __future__ import annotations

from headroom_server.generation.values import FinishReason
from headroom_server.telemetry.histograms import LATENCY_BOUNDS_S, Histogram

TOKEN_BOUNDS_S: tuple[float, ...] = tuple(0.0001 * 1.15**k for k in range(80))
"""0.1 ms to 6.2 s; neighbours differ by 15 %."""

LENGTH_BOUNDS: tuple[float, ...] = tuple(2.0**k for k in range(21))
"""1 to a million tokens."""


class GenerationLedger:
    """Counters and histograms. Used by one thread only."""

    def __init__(self) -> None:
        self.first_token_s = Histogram(LATENCY_BOUNDS_S)
        self.between_tokens_s = Histogram(TOKEN_BOUNDS_S)
        self.per_token_s = Histogram(TOKEN_BOUNDS_S)
        """Mean of one answer, without its first token."""
        self.prompt_tokens = Histogram(LENGTH_BOUNDS)
        self.answer_tokens = Histogram(LENGTH_BOUNDS)
        self.computed_prompt_tokens = 0
        """Tokens of prompts whose first token was generated, each counted once."""
        self.cached_prompt_tokens = 0
        self.finished = dict.fromkeys(FinishReason, 0)
        """Choices by why they ended."""
        self.slow_readers = 0
        """Streams that were ended because their clients did not read."""

    def first(self, seconds: float, prompt_tokens: int, cached_tokens: int) -> None:
        """Record the first token of a choice, from the request's arrival."""
        self.first_token_s.observe(seconds)
        self.computed_prompt_tokens += max(0, prompt_tokens - cached_tokens)
        self.cached_prompt_tokens += cached_tokens

    def later(self, seconds: float, tokens: int) -> None:
        """Record tokens that came together, this long after the ones before."""
        if tokens == 1:
            self.between_tokens_s.observe(seconds)
        else:
            self.between_tokens_s.observe_all([seconds / tokens] * tokens)

    def finish(self, reason: FinishReason, prompt_tokens: int, tokens: int, spent_s: float) -> None:
        """Record the end of a choice; `spent_s` from its first to its last token."""
        self.finished[reason] += 1
        self.prompt_tokens.observe(prompt_tokens)
        self.answer_tokens.observe(tokens)
        if tokens > 1:
            self.per_token_s.observe(spent_s / (tokens - 1))
