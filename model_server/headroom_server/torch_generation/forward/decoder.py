"""The forward pass of a decoder over the tokens of one iteration, decodes and prompts alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch.nn import functional

from headroom_server.generation.values import Chunk
from headroom_server.torch_generation.forward.attention import attend, kernels_for, plan_group
from headroom_server.torch_generation.forward.layout import group_bounds, lay_out
from headroom_server.torch_generation.model.model_shape import ModelShape
from headroom_server.torch_generation.model.rope import RopeTables
from headroom_server.torch_generation.model.weights import DecoderWeights, LayerWeights


class Attend(Protocol):
    """Computes a layer's attention, once the keys and values of its tokens are in memory."""

    def __call__(self, qkv: torch.Tensor, memory: torch.Tensor, window: int | None) -> torch.Tensor:
        """Return [tokens, heads * head_dim] for `qkv` [tokens, heads + 2 kv_heads, head_dim]."""


class Computed(NamedTuple):
    """Results of a forward pass."""

    logits: torch.Tensor
    finite: torch.Tensor
    """Whether all its tokens, also those without logits, came as numbers to the last layer."""


class Decoder:
    """A decoder and its paged memory of keys and values."""

    def __init__(
        self,
        shape: ModelShape,
        weights: DecoderWeights,
        tables: RopeTables,
        blocks: int,
        block_tokens: int,
    ) -> None:
        self.shape = shape
        self.block_tokens = block_tokens
        self._weights = weights
        self._tables = tables
        embedding = weights.embedding
        self.device, self.dtype = embedding.device, embedding.dtype
        self._group_bounds = group_bounds(self.device.type)
        size = (blocks, block_tokens, 2, shape.kv_heads, shape.head_dim)
        # zeros: what a mask hides must be a number, because 0 times NaN is NaN
        self._memory = [
            torch.zeros(size, dtype=self.dtype, device=self.device) for _ in range(shape.layers)
        ]

    def forward(self, chunks: Sequence[Chunk]) -> Computed:
        """Compute the tokens, keep their keys and values, return the wanted rows' logits."""
        shape, device = self.shape, self.device
        layout = lay_out(chunks, self.block_tokens, self._group_bounds)
        last = torch.empty(0)
        planned = [plan_group(one, shape.windows, self.dtype, device) for one in layout.groups]

        def attend_groups(
            qkv: torch.Tensor, memory: torch.Tensor, window: int | None
        ) -> torch.Tensor:
            nonlocal last
            last = qkv
            found = [attend(shape, one, qkv, memory, window) for one in planned]
            return found[0] if len(found) == 1 else torch.cat(found)

        tokens, positions, slots, rows = (
            torch.tensor(numbers, dtype=torch.int64, device=device)
            for numbers in (layout.tokens, layout.positions, layout.slots, layout.rows)
        )
        with kernels_for(device):
            logits = self.compute(tokens, positions, slots, attend_groups, rows)
        return Computed(logits, last.isfinite().all())

    def compute(
        self,
        tokens: torch.Tensor,
        positions: torch.Tensor,
        slots: torch.Tensor,
        attend: Attend,
        rows: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Compute tokens that are on the device; return the logits of `rows`, None: of all."""
        shape = self.shape
        cos = self._tables.cos.index_select(0, positions)
        sin = self._tables.sin.index_select(0, positions)
        hidden = functional.embedding(tokens, self._weights.embedding)
        last = len(self._weights.layers) - 1
        for number, layer in enumerate(self._weights.layers):
            memory = self._memory[number]
            qkv = self._qkv(layer, hidden, cos, sin)
            flat = memory.view(-1, 2 * shape.kv_heads * shape.head_dim)
            # what is left in a block is hidden by the next sequence's mask: see `_memory`
            written = qkv[:, shape.heads :].flatten(1).nan_to_num(0.0, 0.0, 0.0)
            flat.index_copy_(0, slots, written)
            mixed = attend(qkv, memory, shape.windows[number])
            if number == last and rows is not None:
                # what follows concerns the wanted rows only
                hidden, mixed = hidden.index_select(0, rows), mixed.index_select(0, rows)
            hidden = hidden + layer.output(mixed)
            hidden = hidden + self._mlp(layer, hidden)
        normed = functional.rms_norm(hidden, (shape.hidden,), self._weights.norm, shape.norm_eps)
        return self._weights.head(normed).float()

    def _qkv(
        self, layer: LayerWeights, hidden: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> torch.Tensor:
        """Return [tokens, heads + 2 kv_heads, head_dim], queries and keys rotated."""
        shape = self.shape
        normed = functional.rms_norm(hidden, (shape.hidden,), layer.attention_norm, shape.norm_eps)
        qkv = layer.qkv(normed).view(len(hidden), -1, shape.head_dim)
        both = qkv[:, : shape.heads + shape.kv_heads]
        if layer.qk_norm is not None:
            both.copy_(
                functional.rms_norm(both, (shape.head_dim,), None, shape.norm_eps) * layer.qk_norm
            )
        swapped = both.roll(shape.head_dim // 2, -1)
        both.mul_(cos).addcmul_(swapped, sin)
        return qkv

    def _mlp(self, layer: LayerWeights, hidden: torch.Tensor) -> torch.Tensor:
        shape = self.shape
        normed = functional.rms_norm(hidden, (shape.hidden,), layer.mlp_norm, shape.norm_eps)
        both = layer.gate_up(normed)
        gate, up = both.chunk(2, -1)
        return layer.down(functional.silu(gate).mul_(up))
