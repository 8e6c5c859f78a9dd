"""Gives sequences their blocks: shared prefixes, growth, release. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from headroom_server.generation.scheduling.memory.kv_blocks import BlockPool
from headroom_server.generation.scheduling.memory.prefix_digests import extend
from headroom_server.generation.scheduling.sequences import LiveSequence


class KeyValueMemory:
    """The memory of keys and values, by sequence."""

    __slots__ = ("block_tokens", "pool")

    def __init__(self, blocks: int, block_tokens: int, *, caching: bool) -> None:
        self.pool = BlockPool(blocks, caching=caching)
        self.block_tokens = block_tokens

    @property
    def tokens(self) -> int:
        """Tokens for which there are blocks."""
        return self.pool.total * self.block_tokens

    def blocks_for(self, tokens: int) -> int:
        """Return how many blocks hold this many tokens."""
        return -(-tokens // self.block_tokens)

    def prefix(self, sequence: LiveSequence) -> list[int]:
        """Return the existing blocks with which the sequence begins.

        At least one token is left to compute: its logits choose the next one.
        """
        found: list[int] = []
        if not self.pool.caching:
            return found
        tokens, tenant, digests = sequence.tokens, sequence.request.tenant, sequence.digests
        for at in range((len(tokens) - 1) // self.block_tokens):
            if at == len(digests):
                extend(digests, tenant, tokens, self.block_tokens, at + 1)
            block = self.pool.find(digests[at])
            if block is None:
                break
            found.append(block)
        return found

    def new_blocks(self, sequence: LiveSequence, prefix: Iterable[int]) -> int:
        """Return how many available blocks a start would use."""
        shared = sum(not self.pool.is_cached(block) for block in prefix)
        return self.blocks_for(len(sequence.tokens)) - shared

    def start(self, sequence: LiveSequence, prefix: list[int]) -> None:
        """Give a waiting sequence blocks for all its tokens; they must be available."""
        self.pool.share(prefix)
        blocks = list(prefix)
        for _ in range(self.blocks_for(len(sequence.tokens)) - len(prefix)):
            block = self.pool.take(sequence.request.tenant)
            assert block is not None, "the caller checks that the blocks are available"
            blocks.append(block)
        sequence.blocks = blocks
        sequence.grown_tokens = len(blocks) * self.block_tokens
        sequence.computed = len(prefix) * self.block_tokens
        if self.pool.caching:
            full = len(sequence.tokens) // self.block_tokens
            extend(sequence.digests, sequence.request.tenant, sequence.tokens,
                   self.block_tokens, full)  # fmt: skip

    def adopt(self, sequence: LiveSequence) -> int:
        """Take over blocks that others computed since the start; return the tokens saved."""
        size, before = self.block_tokens, sequence.computed
        if before % size:
            return 0
        while sequence.computed + size < len(sequence.tokens):
            at = sequence.computed // size
            block = self.pool.find(sequence.digests[at]) if at < len(sequence.digests) else None
            if block is None or block == sequence.blocks[at]:
                break
            self.pool.share((block,))
            self.pool.release((sequence.blocks[at],))
            sequence.blocks[at] = block
            sequence.computed += size
        return sequence.computed - before

    def grow(self, sequence: LiveSequence, tokens: int) -> bool:
        """Make room for this many tokens in all; return whether there was."""
        while sequence.grown_tokens < tokens:
            block = self.pool.take(sequence.request.tenant)
            if block is None:
                return False
            sequence.blocks.append(block)
            sequence.grown_tokens += self.block_tokens
        return True

    def name_computed(self, sequence: LiveSequence, known: int = 0) -> None:
        """Let later prompts find the full blocks; the first `known` tokens were named before."""
        if not self.pool.caching:
            return
        full = sequence.computed // self.block_tokens
        extend(sequence.digests, sequence.request.tenant, sequence.tokens, self.block_tokens, full)
        for at in range(known // self.block_tokens, full):
            self.pool.name(sequence.blocks[at], sequence.digests[at])

    def release(self, sequence: LiveSequence) -> None:
        """Take a sequence's blocks back; full ones stay in the cache."""
        if sequence.blocks:
            self.name_computed(sequence)
            self.pool.release(sequence.blocks)
            sequence.blocks = []
        sequence.grown_tokens = sequence.computed = 0
