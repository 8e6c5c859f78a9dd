"""The iterations of warm-up: every shape that traffic will execute. Pure.

The first execution of a shape may compile, allocate or select kernels, or record a CUDA graph.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headroom_server.generation.values import (
    Chunk,
    GenerationLimits,
    GenerationRequest,
    Iteration,
    Sampling,
    doubling,
)

LEAST_CHUNK_TOKENS = 16
CONTEXT_TOKENS = 8
"""Tokens before the one that a decode of warm-up computes."""


@dataclass(frozen=True, slots=True)
class WarmUpSequence:
    """A sequence that only warm-up executes."""

    request: GenerationRequest
    tokens: Sequence[int]


def warm_up_iterations(limits: GenerationLimits, max_drafts: int) -> Iterator[Iteration]:
    """Yield decodes of 1, 2, 4, ... sequences, with drafts if there are any, and prompts' chunks.

    Both end with the largest that fits.
    """
    for sequences in limits.decode_sizes:
        yield decodes(limits, sequences, 0)
    room = min(limits.block_tokens, limits.context_tokens)
    drafts = min(max_drafts, room - 2)
    if drafts > 0:
        for sequences in doubling(
            1, min(limits.decode_sizes[-1], limits.max_iteration_tokens // (drafts + 1))
        ):
            yield decodes(limits, sequences, drafts)
    longest = min(
        limits.max_iteration_tokens, limits.context_tokens - 1, limits.blocks * limits.block_tokens
    )
    for tokens in doubling(min(LEAST_CHUNK_TOKENS, longest), longest):
        yield prompt_chunk(limits, tokens)


def decodes(limits: GenerationLimits, sequences: int, drafts: int) -> Iteration:
    """Return an iteration of decodes, each in a block of its own."""
    context = max(0, min(CONTEXT_TOKENS, limits.block_tokens - 1 - drafts))
    chunks = []
    for number in range(sequences):
        tokens = (1 % limits.vocabulary,) * (context + 1)
        computed = tokens[-1:] + tokens[:1] * drafts
        sequence = WarmUpSequence(_request(number, tokens), tokens)
        chunks.append(Chunk(sequence, context, computed, (number,), True, drafts))
    return Iteration(tuple(chunks))


def prompt_chunk(limits: GenerationLimits, count: int) -> Iteration:
    """Return an iteration that computes one whole prompt."""
    tokens = tuple(number % limits.vocabulary for number in range(count))
    blocks = tuple(range(math.ceil(count / limits.block_tokens)))
    sequence = WarmUpSequence(_request(0, tokens), tokens)
    return Iteration((Chunk(sequence, 0, tokens, blocks, True),))


def _request(number: int, tokens: tuple[int, ...]) -> GenerationRequest:
    # greedy and sampled ones, because both kinds have kernels of their own
    sampling = Sampling(temperature=float(number % 2), seed=number)
    return GenerationRequest(key=-1 - number, prompt=tokens, max_tokens=1, sampling=sampling)
