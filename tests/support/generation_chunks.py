"""Sequences and chunks of them, for tests of executors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headroom_server.generation.values import Chunk, GenerationRequest


@dataclass
class Grown:
    """A sequence that a test grows itself."""

    request: GenerationRequest
    tokens: list[int]


def chunk_of(sequence: Grown, start: int, end: int, blocks: Sequence[int] = range(64)) -> Chunk:
    """Return the chunk of positions [start, end); the last one of the sequence samples."""
    samples = end == len(sequence.tokens)
    return Chunk(sequence, start, tuple(sequence.tokens[start:end]), blocks, samples)
