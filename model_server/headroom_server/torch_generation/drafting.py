"""A small decoder that proposes the most probable next tokens for the large one to verify."""

from __future__ import annotations

from collections.abc import Sequence

from headroom_server.generation.values import Chunk, SequenceView
from headroom_server.torch_generation.forward.decoder import Decoder


class _Known:
    """Contents of the draft model's memory for one sequence."""

    def __init__(self) -> None:
        self.blocks: list[int] = []
        self.tokens: list[int] = []


class DraftModel:
    """Has blocks of its own, and computes what it has not seen of a sequence when asked."""

    def __init__(
        self, decoder: Decoder, blocks: int, context_tokens: int, chunk_tokens: int
    ) -> None:
        self._decoder = decoder
        self._free = list(range(blocks))
        self._context = context_tokens
        self._chunk = chunk_tokens
        self._known: dict[int, _Known] = {}

    def propose(self, sequences: Sequence[SequenceView], count: int) -> list[Sequence[int]]:
        """Return up to `count` tokens per sequence; none where its memory or context is full."""
        proposals: list[list[int]] = [[] for _ in sequences]
        able = [at for at, one in enumerate(sequences) if count > 0 and self._reserve(one, count)]
        for at in able:
            self._catch_up(sequences[at])
        for _ in range(count):
            if not able:
                break
            chunks = [self._step(sequences[at], proposals[at]) for at in able]
            computed = self._decoder.forward(chunks)
            chosen = computed.logits.argmax(-1)
            for at, token in zip(able, chosen.tolist(), strict=True):
                proposals[at].append(token)
        return [tuple(one) for one in proposals]

    def forget(self, key: int) -> None:
        """Free a sequence's blocks."""
        known = self._known.pop(key, None)
        if known is not None:
            self._free += known.blocks

    def _reserve(self, sequence: SequenceView, count: int) -> bool:
        """Take the blocks that the sequence and its proposals need; return whether there are."""
        length = len(sequence.tokens) + count
        if length > self._context:
            return False
        known = self._known.setdefault(sequence.request.key, _Known())
        missing = -(-length // self._decoder.block_tokens) - len(known.blocks)
        if missing > len(self._free):
            self.forget(sequence.request.key)
            return False
        known.blocks += [self._free.pop() for _ in range(missing)]
        return True

    def _catch_up(self, sequence: SequenceView) -> None:
        """Compute all but the last token; keep what was computed of the same tokens before."""
        known, tokens = self._known[sequence.request.key], list(sequence.tokens)
        start = len(known.tokens)
        if known.tokens != tokens[:start]:  # drafts were rejected
            same = (a == b for a, b in zip(known.tokens, tokens, strict=False))
            start = next((at for at, equal in enumerate(same) if not equal), len(tokens) - 1)
        end = len(tokens) - 1
        start = min(start, end)
        while start < end:
            stop = min(end, start + self._chunk)
            part = tuple(tokens[start:stop])
            chunk = Chunk(sequence, start, part, known.blocks, samples=False)
            self._decoder.forward([chunk])
            start = stop
        known.tokens = tokens[:end]

    def _step(self, sequence: SequenceView, proposed: list[int]) -> Chunk:
        known = self._known[sequence.request.key]
        token = proposed[-1] if proposed else sequence.tokens[-1]
        known.tokens.append(token)
        return Chunk(sequence, len(known.tokens) - 1, (token,), known.blocks, samples=True)
