"""A Llama of random weights in a folder, and Headroom's executor for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import save_file

from headroom_server.torch_generation.executor import TorchExecutor
from headroom_server.torch_generation.loading import ExecutorOptions


class Size(NamedTuple):
    """The dimensions of a Llama; by default 26 million weights."""

    hidden: int = 512
    layers: int = 8
    heads: int = 8
    kv_heads: int = 4
    wide: int = 1408
    vocabulary: int = 4096
    context: int = 1024


LARGE = Size(hidden=2048, layers=16, heads=32, kv_heads=8, wide=8192, vocabulary=32_768)
"""A billion weights, as Llama 3.2 1B."""


def make_model(folder: Path, size: Size = Size()) -> int:  # noqa: B008 - immutable
    """Save the model; return how many weights it has."""
    torch.manual_seed(0)
    head = size.hidden // size.heads
    config = {
        "model_type": "llama",
        "vocab_size": size.vocabulary,
        "hidden_size": size.hidden,
        "intermediate_size": size.wide,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "num_key_value_heads": size.kv_heads,
        "max_position_embeddings": size.context,
        "tie_word_embeddings": True,
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    tensors = {"model.embed_tokens.weight": torch.randn(size.vocabulary, size.hidden) * 0.02}
    tensors["model.norm.weight"] = torch.ones(size.hidden)
    shapes = {
        "self_attn.q_proj": (size.hidden, size.hidden),
        "self_attn.k_proj": (size.kv_heads * head, size.hidden),
        "self_attn.v_proj": (size.kv_heads * head, size.hidden),
        "self_attn.o_proj": (size.hidden, size.hidden),
        "mlp.gate_proj": (size.wide, size.hidden),
        "mlp.up_proj": (size.wide, size.hidden),
        "mlp.down_proj": (size.hidden, size.wide),
    }
    for layer in range(size.layers):
        prefix = f"model.layers.{layer}."
        for name, shape in shapes.items():
            tensors[f"{prefix}{name}.weight"] = torch.randn(*shape) * 0.02
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{prefix}{name}.weight"] = torch.ones(size.hidden)
    save_file(tensors, folder / "model.safetensors")
    return sum(tensor.numel() for tensor in tensors.values())


def executor_of(folder: Path, seats: int) -> TorchExecutor:
    """Load the model."""
    executor = TorchExecutor(
        folder, ExecutorOptions(max_sequences=seats, threads=1, dtype="float32")
    )
    executor.load()
    return executor
