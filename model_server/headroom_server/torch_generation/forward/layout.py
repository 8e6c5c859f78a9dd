"""Lays out the tokens of an iteration in one forward pass, from its chunks; lists, no tensors.

Decodes (and short verifications) with the same number of tokens are computed together, padded to
the longest context of their group; they are sorted by context, so that little is padded. A chunk of
a prompt is a group of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headroom_server.generation.values import Chunk

TOGETHER_TOKENS = 16
"""Chunks of more tokens are computed alone: their products are large enough."""


class GroupBounds(NamedTuple):
    """Bounds on the decodes that are computed together."""

    tokens: int
    """Most padded tokens of context gathered at once: it bounds memory."""
    padding: int
    """Most tokens that one more decode may add to the contexts of the others."""


CPU_GROUPS = GroupBounds(tokens=4096, padding=4096)
"""Number of groups: what is gathered for each stays in the caches."""
GPU_GROUPS = GroupBounds(tokens=131_072, padding=8192)
"""Starting a group's kernels takes as long as gathering about 8192 tokens (8 kernels of 4 us; 4 KiB
a token, moved three times at 3 TB/s). 131,072 tokens of that size are 512 MiB."""


def group_bounds(device_type: str) -> GroupBounds:
    """Return the bounds for a kind of device."""
    return GPU_GROUPS if device_type == "cuda" else CPU_GROUPS


class Group(NamedTuple):
    """Chunks whose attention is computed together; all compute as many tokens."""

    first: int
    """Index of the group's first token in the forward pass."""
    chunks: tuple[Chunk, ...]
    tokens: int
    """Tokens computed per chunk."""
    blocks: int
    """Blocks gathered per chunk: those of the longest context."""

    @property
    def context(self) -> int:
        """Tokens of the longest context, those computed now included."""
        return max(chunk.start for chunk in self.chunks) + self.tokens


class Layout(NamedTuple):
    """The tokens of a forward pass, group after group."""

    tokens: list[int]
    positions: list[int]
    slots: list[int]
    """Slots of the keys and values of each token: block * block_tokens + offset."""
    groups: tuple[Group, ...]
    rows: list[int]
    """Indices of the tokens whose logits are wanted, in the order of the iteration's chunks."""


def lay_out(chunks: Sequence[Chunk], block_tokens: int, bounds: GroupBounds) -> Layout:
    """Lay out the chunks of an iteration."""
    order = sorted(range(len(chunks)), key=lambda at: (len(chunks[at].tokens), chunks[at].start))
    tokens: list[int] = []
    positions: list[int] = []
    slots: list[int] = []
    ends: dict[int, int] = {}
    groups: list[Group] = []
    members: list[Chunk] = []
    for at in order:
        chunk = chunks[at]
        count = len(chunk.tokens)
        if members and not _joins(members, chunk, block_tokens, bounds):
            groups.append(_group(members, len(tokens), block_tokens))
            members = []
        members.append(chunk)
        tokens += chunk.tokens
        span = range(chunk.start, chunk.start + count)
        positions += span
        blocks = chunk.blocks
        slots += [blocks[p // block_tokens] * block_tokens + p % block_tokens for p in span]
        ends[at] = len(tokens)
    if members:
        groups.append(_group(members, len(tokens), block_tokens))
    rows = [
        row
        for at, chunk in enumerate(chunks)
        if chunk.samples
        for row in range(ends[at] - chunk.drafts - 1, ends[at])
    ]
    return Layout(tokens, positions, slots, tuple(groups), rows)


def _joins(members: list[Chunk], chunk: Chunk, block_tokens: int, bounds: GroupBounds) -> bool:
    """Return whether a chunk, whose context is the longest so far, is computed with the others."""
    count = len(chunk.tokens)
    if count > TOGETHER_TOKENS or len(members[0].tokens) != count:
        return False
    context = -(-(chunk.start + count) // block_tokens) * block_tokens
    padding = (chunk.start - members[-1].start) * len(members)
    return context * (len(members) + 1) <= bounds.tokens and padding <= bounds.padding


def _group(members: list[Chunk], end: int, block_tokens: int) -> Group:
    count = len(members[0].tokens)
    blocks = -(-(members[-1].start + count) // block_tokens)
    return Group(end - count * len(members), tuple(members), count, blocks)
