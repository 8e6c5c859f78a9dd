"""A Llama of random weights in a folder, and our executor for it."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from headroom_server.torch_generation.executor import ExecutorOptions, TorchExecutor

HIDDEN, LAYERS, HEADS, KV_HEADS, WIDE, VOCABULARY, CONTEXT = 512, 8, 8, 4, 1408, 4096, 1024


def make_model(folder: Path) -> int:
    """Save the model; return how many weights it has."""
    torch.manual_seed(0)
    size = HIDDEN // HEADS
    config = {
        "model_type": "llama",
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": WIDE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "max_position_embeddings": CONTEXT,
        "tie_word_embeddings": True,
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    tensors = {"model.embed_tokens.weight": torch.randn(VOCABULARY, HIDDEN) * 0.02}
    tensors["model.norm.weight"] = torch.ones(HIDDEN)
    shapes = {
        "self_attn.q_proj": (HIDDEN, HIDDEN),
        "self_attn.k_proj": (KV_HEADS * size, HIDDEN),
        "self_attn.v_proj": (KV_HEADS * size, HIDDEN),
        "self_attn.o_proj": (HIDDEN, HIDDEN),
        "mlp.gate_proj": (WIDE, HIDDEN),
        "mlp.up_proj": (WIDE, HIDDEN),
        "mlp.down_proj": (HIDDEN, WIDE),
    }
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        for name, shape in shapes.items():
            tensors[f"{prefix}{name}.weight"] = torch.randn(*shape) * 0.02
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{prefix}{name}.weight"] = torch.ones(HIDDEN)
    save_file(tensors, folder / "model.safetensors")
    return sum(tensor.numel() for tensor in tensors.values())


def executor_of(folder: Path, seats: int) -> TorchExecutor:
    """Load the model."""
    executor = TorchExecutor(
        folder, ExecutorOptions(max_sequences=seats, threads=1, dtype="float32")
    )
    executor.load()
    return executor
