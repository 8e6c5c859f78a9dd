"""What a request adds to its logits: penalties, biases, and the mask of its grammar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch

from headroom_server.generation.values import GenerationRequest, Sampling


def adjusts(request: GenerationRequest) -> bool:
    """Whether a request changes its logits at all."""
    sampling = request.sampling
    return bool(
        request.grammar is not None
        or sampling.logit_bias
        or sampling.presence_penalty
        or sampling.frequency_penalty
        or sampling.repetition_penalty != 1.0
    )


def adjust(row: torch.Tensor, request: GenerationRequest, tokens: Sequence[int]) -> None:
    """Change one row of logits in place; `tokens` are the prompt and all that was generated."""
    sampling = request.sampling
    if sampling.repetition_penalty != 1.0:
        _repetition(row, sampling.repetition_penalty, tokens)
    if sampling.presence_penalty or sampling.frequency_penalty:
        _occurrences(row, sampling, tokens[len(request.prompt) :])
    if sampling.logit_bias:
        known = {token: bias for token, bias in sampling.logit_bias.items() if token < len(row)}
        biases = torch.tensor(list(known.values()), dtype=row.dtype, device=row.device)
        row[_ids(row, list(known))] += biases
    if request.grammar is not None:
        row.masked_fill_(~_allowed(row, request.grammar.allowed()), float("-inf"))


def _repetition(row: torch.Tensor, penalty: float, tokens: Sequence[int]) -> None:
    """Divide positive logits of seen tokens and multiply negative ones (Keskar et al. 2019)."""
    ids = _ids(row, sorted(set(tokens)))
    values = row[ids]
    row[ids] = torch.where(values > 0, values / penalty, values * penalty)


def _occurrences(row: torch.Tensor, sampling: Sampling, generated: Sequence[int]) -> None:
    counts = Counter(generated)
    if not counts:
        return
    numbers = torch.tensor(list(counts.values()), dtype=row.dtype, device=row.device)
    penalty = sampling.presence_penalty + sampling.frequency_penalty * numbers
    row[_ids(row, list(counts))] -= penalty


def _ids(row: torch.Tensor, tokens: Sequence[int]) -> torch.Tensor:
    return torch.tensor(tokens, dtype=torch.int64, device=row.device)


def _allowed(row: torch.Tensor, mask: memoryview) -> torch.Tensor:
    """Return the grammar's bits as booleans; tokens beyond the mask are not allowed."""
    packed = torch.frombuffer(bytearray(mask.cast("B")), dtype=torch.uint8)
    bits = packed.unsqueeze(1).bitwise_right_shift(torch.arange(8, dtype=torch.uint8)) & 1
    flat = bits.flatten()[: len(row)].bool()
    allowed = torch.zeros(len(row), dtype=torch.bool)
    allowed[: len(flat)] = flat
    return allowed.to(row.device)
