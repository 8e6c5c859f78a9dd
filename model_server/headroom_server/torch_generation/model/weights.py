"""A decoder's weights for the forward pass: q, k and v in one matrix, gate and up too."""

from __future__ import annotations

from typing import NamedTuple

import torch

from headroom_server.torch_generation.model.checkpoint import Checkpoint
from headroom_server.torch_generation.model.linear import Linear, linear
from headroom_server.torch_generation.model.model_shape import ModelShape


class LayerWeights(NamedTuple):
    """One layer."""

    attention_norm: torch.Tensor
    qkv: Linear
    qk_norm: torch.Tensor | None
    """[heads + kv_heads, head_dim]: one row per head of queries, then of keys."""
    output: Linear
    mlp_norm: torch.Tensor
    gate_up: Linear
    down: Linear


class DecoderWeights(NamedTuple):
    """All layers, the embedding and the head."""

    embedding: torch.Tensor
    layers: tuple[LayerWeights, ...]
    norm: torch.Tensor
    head: Linear


def read_weights(shape: ModelShape, checkpoint: Checkpoint, *, int8: bool) -> DecoderWeights:
    """Read a decoder's weights.

    Raises:
        LoadError: a tensor is absent or of another size.
    """
    embedding = checkpoint.read("model.embed_tokens.weight", shape.vocabulary, shape.hidden)
    # int8 leaves the head alone: its error goes straight to the probabilities
    if shape.tied:
        head = linear(embedding, None, int8=False)
    else:
        head_weight = checkpoint.read("lm_head.weight", shape.vocabulary, shape.hidden)
        head = linear(head_weight, None, int8=False)
    layers = tuple(
        _layer(shape, checkpoint, f"model.layers.{number}.", int8=int8)
        for number in range(shape.layers)
    )
    return DecoderWeights(
        embedding, layers, checkpoint.read("model.norm.weight", shape.hidden), head
    )


def _layer(shape: ModelShape, checkpoint: Checkpoint, prefix: str, *, int8: bool) -> LayerWeights:
    hidden, size = shape.hidden, shape.head_dim
    queries, keys = shape.heads * size, shape.kv_heads * size

    def read(names: tuple[str, ...], rows: tuple[int, ...], columns: int, *, bias: bool) -> Linear:
        pairs = list(zip((prefix + name for name in names), rows, strict=True))
        weight = torch.cat([checkpoint.read(f"{n}.weight", count, columns) for n, count in pairs])
        added = (
            torch.cat([checkpoint.read(f"{n}.bias", count) for n, count in pairs]) if bias else None
        )
        return linear(weight, added, int8=int8)

    norms = None
    if shape.qk_norm:
        query = checkpoint.read(f"{prefix}self_attn.q_norm.weight", size)
        key = checkpoint.read(f"{prefix}self_attn.k_norm.weight", size)
        norms = torch.cat((query.expand(shape.heads, size), key.expand(shape.kv_heads, size)))
    attention = tuple(f"self_attn.{name}_proj" for name in "qkv")
    wide, bias = shape.intermediate, shape.mlp_bias
    return LayerWeights(
        attention_norm=checkpoint.read(f"{prefix}input_layernorm.weight", hidden),
        qkv=read(attention, (queries, keys, keys), hidden, bias=shape.qkv_bias),
        qk_norm=norms,
        output=read(("self_attn.o_proj",), (hidden,), queries, bias=shape.output_bias),
        mlp_norm=checkpoint.read(f"{prefix}post_attention_layernorm.weight", hidden),
        gate_up=read(("mlp.gate_proj", "mlp.up_proj"), (wide, wide), hidden, bias=bias),
        down=read(("mlp.down_proj",), (hidden,), wide, bias=bias),
    )
