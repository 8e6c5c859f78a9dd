"""The distribution of the next token: temperature, top-k, top-p and min-p; then one draw of each.

Rows are independent: no row's result depends on the other rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from headroom_server.generation.values import Sampling

MOST_CANDIDATES = 1024
"""Rows with a top-k up to this look at their best tokens only; others sort the vocabulary."""


def draw(
    logits: torch.Tensor, samplings: Sequence[Sampling], uniforms: Sequence[float]
) -> torch.Tensor:
    """Draw a token of each row by inverting the cumulative distribution at its uniform number."""
    device = logits.device
    chosen = torch.empty(len(samplings), dtype=torch.int64, device=device)
    plain: list[int] = []
    few: list[int] = []
    sorted_: list[int] = []
    for row, one in enumerate(samplings):
        if 0 < one.top_k <= MOST_CANDIDATES:
            few.append(row)
        elif one.top_k or one.top_p < 1.0 or one.min_p > 0.0:
            sorted_.append(row)
        else:
            plain.append(row)
    temperatures = _column([one.temperature for one in samplings], device)
    # below 1e-5 the quotient may overflow; it is then the most probable token anyway
    scaled = (logits.double() - logits.amax(-1, keepdim=True)) / temperatures.clamp(min=1e-5)
    numbers = _column(uniforms, device)
    for rows, filtered in ((plain, False), (few, True), (sorted_, True)):
        if not rows:
            continue
        at = torch.tensor(rows, device=device)
        part = scaled.index_select(0, at)
        if not filtered:
            chosen[at] = _invert(part.softmax(-1), numbers[at])
            continue
        own = [samplings[row] for row in rows]
        most = max(one.top_k for one in own) if rows is few else part.shape[1]
        values, tokens = part.topk(min(most, part.shape[1]), dim=-1)
        picked = _invert(kept(values, own), numbers[at])
        chosen[at] = tokens.gather(1, picked.unsqueeze(1)).squeeze(1)
    return chosen


def kept(values: torch.Tensor, samplings: Sequence[Sampling]) -> torch.Tensor:
    """Return the weights of candidates sorted by value: 0 where a filter removes them."""
    device, width = values.device, values.shape[1]
    ks = _column([float(one.top_k or width) for one in samplings], device)
    top_ps = _column([one.top_p for one in samplings], device)
    min_ps = _column([one.min_p for one in samplings], device)
    ranks = torch.arange(width, device=device)
    weights = values.softmax(-1) * (ranks < ks)
    # the smallest set whose probability reaches top-p: what precedes a member is below it
    before = weights.cumsum(-1) - weights
    weights = weights * ((before < top_ps * weights.sum(-1, keepdim=True)) | (top_ps >= 1.0))
    weights = weights * (weights >= min_ps * weights[:, :1])
    weights[:, 0].clamp_(min=torch.finfo(weights.dtype).tiny)
    return weights


def _invert(weights: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """Return the first index whose cumulative weight exceeds number x total."""
    sums = weights.cumsum(-1)
    found = torch.searchsorted(sums, numbers * sums[:, -1:], right=True)
    # rounding may place the number at the end, after the last weight above zero
    last = weights.shape[1] - 1 - weights.flip(-1).gt(0).to(torch.uint8).argmax(-1, keepdim=True)
    return torch.minimum(found, last).squeeze(1)


def _column(values: Sequence[float], device: torch.device) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64, device=device).unsqueeze(1)
