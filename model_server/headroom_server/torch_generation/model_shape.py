"""What a Hugging Face `config.json` says of a decoder, checked: families, sizes, features."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headroom_server.engine import LoadError

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
ROPE_KINDS = ("default", "dynamic", "linear", "llama3", "yarn")
LARGEST = 1 << 24
"""Bound of every size: a number beyond it is a mistake, not a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeShape:
    """Rotary position embedding: its base, and how it is scaled."""

    kind: str
    theta: float
    scaling: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """The sizes and features of a decoder."""

    family: str
    vocabulary: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    norm_eps: float
    tied: bool
    qkv_bias: bool
    output_bias: bool
    mlp_bias: bool
    qk_norm: bool
    windows: tuple[int | None, ...]
    """Per layer, how many tokens a token attends to, itself included; None: all."""
    rope: RopeShape
    context_tokens: int
    dtype: str

    @property
    def parameters(self) -> int:
        """Number of weights of the matrices."""
        qkv = (self.heads + 2 * self.kv_heads) * self.head_dim
        layer = self.hidden * (qkv + self.heads * self.head_dim + 3 * self.intermediate)
        return self.layers * layer + self.vocabulary * self.hidden * (1 if self.tied else 2)

    @property
    def kv_numbers(self) -> int:
        """Numbers that one token keeps as keys and values."""
        return 2 * self.layers * self.kv_heads * self.head_dim


def read_shape(folder: Path) -> ModelShape:
    """Read `config.json` of a folder.

    Raises:
        LoadError: it is absent, not JSON, or describes a model that is not supported.
    """
    path = folder / "config.json"
    try:
        config = json.loads(path.read_bytes())
    except OSError as error:
        raise LoadError(f"config.json must be readable in the model's folder: {error}") from error
    except ValueError as error:
        raise LoadError(f"config.json must be JSON: {error}") from error
    if not isinstance(config, dict):
        raise LoadError(f"config.json must be a JSON object; got {type(config).__name__}")
    return shape_of(config)


def shape_of(config: Mapping[str, Any]) -> ModelShape:
    """Return the shape that a configuration describes.

    Raises:
        LoadError: a field is absent, out of bounds, or not supported.
    """
    family = config.get("model_type")
    if family not in FAMILIES:
        raise LoadError(f"model_type must be one of {', '.join(FAMILIES)}; got {family!r}")
    if (act := config.get("hidden_act", "silu")) != "silu":
        raise LoadError(f"hidden_act must be 'silu'; got {act!r}")
    if config.get("quantization_config"):
        raise LoadError(
            "quantization_config must be absent; convert the weights to bfloat16, or set int8"
        )
    hidden, heads = _size(config, "hidden_size"), _size(config, "num_attention_heads")
    kv_heads = _size(config, "num_key_value_heads", heads)
    head_dim = _size(config, "head_dim", max(1, hidden // heads))
    layers = _size(config, "num_hidden_layers")
    if heads % kv_heads:
        raise LoadError(
            f"num_attention_heads must be a multiple of num_key_value_heads; got {heads} and "
            f"{kv_heads}"
        )
    if head_dim % 2:
        raise LoadError(f"head_dim must be even; got {head_dim}")
    bias = bool(config.get("attention_bias", False))
    context = _size(config, "max_position_embeddings")
    rope = _rope(config)
    return ModelShape(
        family=family,
        vocabulary=_size(config, "vocab_size"),
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=_size(config, "intermediate_size"),
        norm_eps=_number(config, "rms_norm_eps", 1e-6),
        tied=bool(config.get("tie_word_embeddings", False)),
        qkv_bias=True if family == "qwen2" else bias and family != "mistral",
        output_bias=bias and family in ("llama", "qwen3"),
        mlp_bias=bool(config.get("mlp_bias", False)) and family == "llama",
        qk_norm=family == "qwen3",
        windows=_windows(config, family, layers),
        rope=rope,
        context_tokens=context,
        dtype=str(config.get("dtype") or config.get("torch_dtype") or "float32"),
    )


def _size(config: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value = config.get(name)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST:
        raise LoadError(f"{name} must be an integer from 1 to {LARGEST}; got {value!r}")
    return value


def _number(config: Mapping[str, Any], name: str, default: float) -> float:
    value = config.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        raise LoadError(f"{name} must be a positive number; got {value!r}")
    return float(value)


def _rope(config: Mapping[str, Any]) -> RopeShape:
    """Return the embedding; the older field is `rope_scaling`, the newer `rope_parameters`."""
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if not isinstance(scaling, dict):
        raise LoadError(f"rope_scaling must be an object; got {type(scaling).__name__}")
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind not in ROPE_KINDS:
        raise LoadError(f"rope_type must be one of {', '.join(ROPE_KINDS)}; got {kind!r}")
    fields = config if "rope_theta" not in scaling else scaling
    return RopeShape(kind=kind, theta=_number(fields, "rope_theta", 10_000.0), scaling=scaling)


def _windows(config: Mapping[str, Any], family: str, layers: int) -> tuple[int | None, ...]:
    window = config.get("sliding_window")
    if window is None or family == "llama":
        return (None,) * layers
    if family != "mistral" and not config.get("use_sliding_window", False):
        return (None,) * layers
    window = _size(config, "sliding_window")
    kinds = config.get("layer_types")
    if isinstance(kinds, list) and len(kinds) == layers:
        return tuple(window if kind == "sliding_attention" else None for kind in kinds)
    first = 0 if family == "mistral" else _size(config, "max_window_layers", layers)
    return tuple(window if layer >= first else None for layer in range(layers))
