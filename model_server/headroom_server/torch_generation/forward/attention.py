"""Paged attention in plain torch: gather the blocks, then scaled dot product attention.

Keys and values of a layer are one tensor [blocks, block_tokens, 2, kv_heads, head_dim], so that a
block is copied as one piece (16 tokens x 2 x 4 heads x 64 x 4 bytes = 32 KiB). The heads of queries
that share a head of keys become rows of one query matrix: no key is repeated.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right

from headroom_server.torch_generation.forward.layout import Group
from headroom_server.torch_generation.model.model_shape import ModelShape

GPU_KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""Without cuDNN's, which makes a plan for each shape: 0.1 s, and an iteration with a prompt has a
new one nearly every time (torch 2.11, H200)."""


def kernels_for(device: torch.device) -> AbstractContextManager[None]:
    """Return the context in which attention is computed."""
    return sdpa_kernel(GPU_KERNELS) if device.type == "cuda" else nullcontext()


class PlannedGroup(NamedTuple):
    """A group's tensors, made once per iteration and used by every layer."""

    group: Group
    blocks: torch.Tensor | None
    """Blocks to gather, one chunk after the other; None: a whole prompt, nothing was before it."""
    masks: dict[int | None, torch.Tensor | None]
    """Masks by window, added to the products: 0 or -infinity; None: all is attended to."""


def plan_group(
    group: Group, windows: Iterable[int | None], dtype: torch.dtype, device: torch.device
) -> PlannedGroup:
    """Make the tensors of a group."""
    blocks: torch.Tensor | None = None
    fresh = len(group.chunks) == 1 and not group.chunks[0].start
    if not fresh:
        indices: list[int] = []
        for chunk in group.chunks:
            own = list(chunk.blocks[: group.blocks])
            # a shorter table is padded with its own first block, which the mask hides
            indices += own + own[:1] * (group.blocks - len(own))
        blocks = torch.tensor(indices, device=device)
    masks = {window: _mask(group, window, dtype, device, fresh=fresh) for window in set(windows)}
    return PlannedGroup(group, blocks, masks)


def _mask(
    group: Group, window: int | None, dtype: torch.dtype, device: torch.device, *, fresh: bool
) -> torch.Tensor | None:
    """Return the mask [chunks, 1, tokens, context]; None where it would hide nothing special."""
    context, count = group.context, group.tokens
    starts = [chunk.start for chunk in group.chunks]
    unbounded = window is None or context <= window
    if unbounded and (fresh or (count == 1 and min(starts) + 1 == context)):
        return None
    if unbounded and len(starts) == 1 and device.type == "cuda":
        return causal_lower_right(count, context)  # flash attention's own: no mask in memory
    last = torch.tensor(starts, device=device).view(-1, 1, 1, 1) + torch.arange(
        count, device=device
    ).view(1, 1, -1, 1)
    keys = torch.arange(context, device=device)
    hidden = keys > last
    if window is not None:
        hidden |= keys <= last - window
    mask = torch.zeros(hidden.shape, dtype=dtype, device=device)
    return mask.masked_fill_(hidden, float("-inf"))


def attend(
    shape: ModelShape,
    planned: PlannedGroup,
    qkv: torch.Tensor,
    memory: torch.Tensor,
    window: int | None,
) -> torch.Tensor:
    """Return the attention's output [tokens of the group, heads * head_dim].

    `qkv` [tokens, heads + 2 kv_heads, head_dim] is of all the pass's tokens; their keys and values
    are in `memory` already.
    """
    group, heads, kv_heads, size = planned.group, shape.heads, shape.kv_heads, shape.head_dim
    chunks, count = len(group.chunks), group.tokens
    rows = qkv[group.first : group.first + chunks * count]
    mask = planned.masks[window]
    if planned.blocks is None:
        both = rows[:, heads:].view(1, count, 2, kv_heads, size)
    else:
        gathered = memory.index_select(0, planned.blocks)
        both = gathered.view(chunks, -1, 2, kv_heads, size)[:, : group.context]
    keys, values = both[:, :, 0].transpose(1, 2), both[:, :, 1].transpose(1, 2)
    if count == 1:
        queries = rows[:, :heads].reshape(chunks, kv_heads, heads // kv_heads, size)
        found = functional.scaled_dot_product_attention(queries, keys, values, mask)
        return found.reshape(chunks, heads * size)
    queries = rows[:, :heads].view(chunks, count, heads, size).transpose(1, 2)
    if mask is not None and type(mask) is torch.Tensor and mask.device.type == "cuda":
        # the kernel for masks wants a head of keys for each head of queries
        keys, values = (one.repeat_interleave(heads // kv_heads, 1) for one in (keys, values))
    found = functional.scaled_dot_product_attention(
        queries, keys, values, mask, is_causal=mask is None, enable_gqa=heads != keys.shape[1]
    )
    return found.transpose(1, 2).reshape(chunks * count, heads * size)
