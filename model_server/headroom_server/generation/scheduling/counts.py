"""PURE. Counts of a scheduler, from one instant."""

from __future__ import annotations

from typing import NamedTuple


class GenerationStatistics(NamedTuple):
    """Totals since the start, then the present state."""

    iterations: int = 0
    failed_iterations: int = 0
    computed_prompt_tokens: int = 0
    """Tokens of prompts (and of preempted answers) computed."""
    cached_prompt_tokens: int = 0
    """Tokens of prompts that the prefix cache supplied."""
    generated_tokens: int = 0
    accepted_tokens: int = 0
    """Drafted tokens that the model accepted."""
    rejected_tokens: int = 0
    preemptions: int = 0
    finished: int = 0
    refused: int = 0
    xx: tuple[float, ...] = ()
    """Sum of X'X over all iterations: the upper triangle by rows of (1, P, D, KV, X)."""
    xy: tuple[float, ...] = ()
    """Sum of X't over all iterations."""
    total_blocks: int = 0
    used_blocks: int = 0
    cached_blocks: int = 0
    free_blocks: int = 0
    waiting_requests: int = 0
    waiting_fillers: int = 0
    """Those of them that belong to the batch class."""
    waiting_tokens: int = 0
    prefilling_sequences: int = 0
    decoding_sequences: int = 0
    context_tokens: int = 0
    """Tokens in the contexts of the decoding sequences."""
