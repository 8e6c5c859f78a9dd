"""Makes a small language model of random weights, in the form in which Hugging Face publishes them.

Its text is meaningless, but it loads, generates, and costs what a trained one of its size does. Its
tokens are bytes and a few special tokens.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

BEGIN, END, TURN, TURN_END = "<|begin|>", "<|end|>", "<|turn|>", "<|turn_end|>"
SPECIAL = (BEGIN, END, TURN, TURN_END)
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "<|turn|>{{ message['role'] }}\n{{ message['content'] }}<|turn_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaSize:
    """The dimensions of a model; by default 0.2 million parameters."""

    hidden_size: int = 64
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    intermediate_size: int = 256
    context_tokens: int = 2048

    @property
    def vocabulary(self) -> int:
        """Bytes and special tokens."""
        return 256 + len(SPECIAL)


def write_random_llama(folder: Path, size: LlamaSize | None = None, seed: int = 0) -> None:
    """Write configuration, tokenizer and weights into a new folder.

    Raises:
        OSError: the folder cannot be written, or exists.
    """
    size = size or LlamaSize()
    folder.mkdir(parents=True)
    for name, content in (
        ("config.json", _config(size)),
        ("generation_config.json", {"eos_token_id": [256 + SPECIAL.index(END)]}),
        ("tokenizer.json", _tokenizer()),
        ("tokenizer_config.json", _tokenizer_config(size)),
    ):
        (folder / name).write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    _write_safetensors(folder / "model.safetensors", dict(_weights(size, seed)))


def _config(size: LlamaSize) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": size.hidden_size,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "num_key_value_heads": size.kv_heads,
        "head_dim": size.hidden_size // size.heads,
        "intermediate_size": size.intermediate_size,
        "max_position_embeddings": size.context_tokens,
        "vocab_size": size.vocabulary,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "bos_token_id": 256,
        "eos_token_id": 256 + SPECIAL.index(END),
    }


def _tokenizer_config(size: LlamaSize) -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BEGIN,
        "eos_token": END,
        "model_max_length": size.context_tokens,
        "chat_template": CHAT_TEMPLATE,
    }


def _tokenizer() -> dict[str, Any]:
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    added = [
        {
            "id": 256 + number,
            "content": text,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for number, text in enumerate(SPECIAL)
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": byte_level | {"use_regex": True},
        "post_processor": None,
        "decoder": byte_level | {"use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {character: value for value, character in enumerate(_byte_characters())},
            "merges": [],
        },
    }


def _byte_characters() -> list[str]:
    """Return GPT-2's character of each byte; see `huggingface_tokenizer`."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(256, 512))
    return [chr(value) if value in plain else chr(next(others)) for value in range(256)]


def _weights(size: LlamaSize, seed: int) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    random = np.random.default_rng(seed)
    hidden, inner = size.hidden_size, size.intermediate_size
    kv = hidden // size.heads * size.kv_heads

    def matrix(rows: int, columns: int) -> np.ndarray[Any, Any]:
        return random.normal(0.0, columns**-0.5, (rows, columns)).astype(np.float32)

    ones = np.ones(hidden, np.float32)
    yield "model.embed_tokens.weight", matrix(size.vocabulary, hidden)
    for layer in range(size.layers):
        at = f"model.layers.{layer}"
        yield f"{at}.input_layernorm.weight", ones
        yield f"{at}.self_attn.q_proj.weight", matrix(hidden, hidden)
        yield f"{at}.self_attn.k_proj.weight", matrix(kv, hidden)
        yield f"{at}.self_attn.v_proj.weight", matrix(kv, hidden)
        yield f"{at}.self_attn.o_proj.weight", matrix(hidden, hidden)
        yield f"{at}.post_attention_layernorm.weight", ones
        yield f"{at}.mlp.gate_proj.weight", matrix(inner, hidden)
        yield f"{at}.mlp.up_proj.weight", matrix(inner, hidden)
        yield f"{at}.mlp.down_proj.weight", matrix(hidden, inner)
    yield "model.norm.weight", ones
    yield "lm_head.weight", matrix(size.vocabulary, hidden)


def _write_safetensors(path: Path, tensors: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write the format of https://github.com/huggingface/safetensors: a header, then the data."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, tensor in tensors.items():
        end = at + tensor.nbytes
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [at, end]}
        at = end
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    with path.open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little"))
        file.write(encoded)
        for tensor in tensors.values():
            file.write(tensor.astype("<f4").tobytes())
