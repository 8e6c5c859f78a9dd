"""Adjusts the logits of a request by its penalties and biases."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

import torch

from headroom_server.generation.values import GenerationRequest, SequenceView


def adjusts(request: GenerationRequest) -> bool:
    """Return whether a request changes its logits at all."""
    sampling = request.sampling
    return bool(
        sampling.logit_bias
        or sampling.presence_penalty
        or sampling.frequency_penalty
        or sampling.repetition_penalty != 1.0
    )


class Seen:
    """Tokens that a sequence has, on the device of its logits. It grows by new ones."""

    def __init__(self, prompt_tokens: int, row: torch.Tensor) -> None:
        self.anywhere = torch.zeros(len(row), dtype=torch.bool, device=row.device)
        self.generated = torch.zeros_like(row)
        """Number of times that each token was generated."""
        self._prompt_tokens = prompt_tokens
        self._known = 0

    def extend(self, tokens: Sequence[int]) -> None:
        """Count the tokens of the whole sequence that are not counted yet."""
        new, first = tokens[self._known :], max(0, self._prompt_tokens - self._known)
        self._known = len(tokens)
        if new:
            ids = _ids(self.anywhere, new)
            self.anywhere[ids] = True
            self.generated.index_add_(0, ids[first:], self.generated.new_ones(len(ids[first:])))

    def with_drafts(self, drafts: Sequence[int]) -> Seen:
        """Return a copy as if these had been generated."""
        other = copy(self)
        other.anywhere, other.generated = self.anywhere.clone(), self.generated.clone()
        other._prompt_tokens, other._known = 0, 0
        other.extend(drafts)
        return other


class Bias(NamedTuple):
    """A request's biases, where its logits are."""

    tokens: torch.Tensor
    values: torch.Tensor


class KeptAdjustments:
    """State of each request's adjustments, kept between iterations.

    Looking at all tokens of a context of 32 000 takes 8 ms, for which all other sequences wait.
    """

    def __init__(self) -> None:
        self._seen: dict[int, Seen] = {}
        self._biases: dict[int, Bias] = {}

    def bias(self, row: torch.Tensor, request: GenerationRequest) -> Bias:
        """Return a request's biases."""
        found = self._biases.get(request.key)
        if found is None:
            biases = request.sampling.logit_bias
            known = {token: bias for token, bias in biases.items() if token < len(row)}
            values = torch.tensor(list(known.values()), dtype=row.dtype, device=row.device)
            found = self._biases[request.key] = Bias(_ids(row, list(known)), values)
        return found

    def seen(
        self,
        row: torch.Tensor,
        request: GenerationRequest,
        tokens: Sequence[int],
        drafts: Sequence[int],
    ) -> Seen:
        """Return what a sequence has, with drafts behind its tokens."""
        seen = self._seen.get(request.key)
        if seen is None:
            seen = self._seen[request.key] = Seen(len(request.prompt), row)
        seen.extend(tokens)
        return seen.with_drafts(drafts) if drafts else seen

    def forget(self, key: int) -> None:
        """Drop what is kept of a request."""
        self._seen.pop(key, None)
        self._biases.pop(key, None)


def adjust(
    row: torch.Tensor, sequence: SequenceView, drafts: Sequence[int], kept: KeptAdjustments
) -> None:
    """Change one row of logits in place; `drafts` are behind the sequence's tokens."""
    request = sequence.request
    sampling = request.sampling
    occurrences = bool(sampling.presence_penalty or sampling.frequency_penalty)
    if occurrences or sampling.repetition_penalty != 1.0:
        seen = kept.seen(row, request, sequence.tokens, drafts)
        if sampling.repetition_penalty != 1.0:
            _repetition(row, sampling.repetition_penalty, seen.anywhere)
        if occurrences:
            row -= sampling.presence_penalty * (seen.generated > 0)
            row -= sampling.frequency_penalty * seen.generated
    if sampling.logit_bias:
        bias = kept.bias(row, request)
        row[bias.tokens] += bias.values


def _repetition(row: torch.Tensor, penalty: float, seen: torch.Tensor) -> None:
    """Divide positive logits of seen tokens and multiply negative ones (Keskar et al. 2019)."""
    penalized = torch.where(row > 0, row / penalty, row * penalty)
    row.copy_(torch.where(seen, penalized, row))


def _ids(row: torch.Tensor, tokens: Sequence[int]) -> torch.Tensor:
    return torch.tensor(tokens, dtype=torch.int64, device=row.device)
