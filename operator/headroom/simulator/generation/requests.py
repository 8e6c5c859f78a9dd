"""The requests of a workload: arrivals, lengths of prompts and answers, blocks of prefixes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.values.tokens import RequestShape

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PREFIX_TOKENS = 512
"""Tokens of a prefix block of the published traces (Mooncake, FAST 2025)."""


def _empty() -> Ints:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Requests:
    """All requests of a run, sorted by arrival."""

    arrival_s: Floats
    prompt_tokens: Ints
    output_tokens: Ints
    block_ids: Ints = field(default_factory=_empty)
    """Prefix blocks of all prompts, one prompt after the other."""
    block_starts: Ints = field(default_factory=_empty)
    """[requests + 1] Where each request's blocks begin; empty: no prompt shares a prefix."""

    def __post_init__(self) -> None:
        """Raise ValueError for arrivals that are not sorted or lengths below 1."""
        if len(self.arrival_s) and np.any(np.diff(self.arrival_s) < 0):
            raise ValueError("arrivals must be sorted; sort them")
        if np.any(self.prompt_tokens < 1) or np.any(self.output_tokens < 1):
            raise ValueError("prompts and answers must have at least 1 token")

    def __len__(self) -> int:
        """Return their number."""
        return len(self.arrival_s)

    @cached_property
    def starts(self) -> Ints:
        """Begin of each request's blocks, also if there are none."""
        if len(self.block_starts):
            return self.block_starts
        return np.zeros(len(self) + 1, dtype=np.int64)

    @property
    def duration_s(self) -> float:
        """The first whole second after the last arrival."""
        return float(np.floor(self.arrival_s[-1])) + 1.0 if len(self) else 0.0

    def bounded(self, context_tokens: int) -> Requests:
        """Return the requests with prompts and answers cut to a context of this length."""
        prompt = np.minimum(self.prompt_tokens, context_tokens - 1)
        output = np.minimum(self.output_tokens, context_tokens - prompt)
        return Requests(
            arrival_s=self.arrival_s,
            prompt_tokens=prompt,
            output_tokens=output,
            block_ids=self.block_ids,
            block_starts=self.block_starts,
        )

    def taken(self, kept: NDArray[np.bool_]) -> Requests:
        """Return those of the requests that the mask keeps."""
        starts = self.starts
        rows = np.flatnonzero(kept)
        pieces = [self.block_ids[starts[row] : starts[row + 1]] for row in rows]
        lengths = np.array([len(piece) for piece in pieces], dtype=np.int64)
        return Requests(
            arrival_s=self.arrival_s[kept],
            prompt_tokens=self.prompt_tokens[kept],
            output_tokens=self.output_tokens[kept],
            block_ids=np.concatenate(pieces) if len(self.block_ids) else _empty(),
            block_starts=np.concatenate(([0], np.cumsum(lengths))),
        )

    def shape(self) -> RequestShape:
        """Return the moments of the lengths, as if nothing were cached."""
        prompt, output = self.prompt_tokens.astype(float), self.output_tokens.astype(float)
        return RequestShape(
            prompt_tokens=float(prompt.mean()),
            computed_tokens=float(prompt.mean()),
            output_tokens=float(output.mean()),
            prompt_tokens_squared=float((prompt**2).mean()),
            output_tokens_squared=float((output**2).mean()),
            prompt_output_product=float((prompt * output).mean()),
        )
