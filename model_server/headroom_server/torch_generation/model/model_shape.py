"""Reads the families, sizes and features of a decoder from a Hugging Face `config.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headroom_server.engine import LoadError
from headroom_server.repository import files
from headroom_server.torch_generation.model.config_fields import check_supported, number, size

ROPE_KINDS = ("default", "dynamic", "linear", "llama3", "yarn")
ATTENTION_KINDS = ("full_attention", "sliding_attention")
USUAL_WINDOW = 4096
"""Window that transformers takes for Mistral and Qwen where the field is absent."""
USUAL_FULL_LAYERS = 28
"""Layers of Qwen that come before those with a window."""


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
    data = files.read(folder, folder / "config.json", files.MOST_JSON_BYTES)
    if data is None:
        raise LoadError("config.json must be in the model's folder; got none: add the file")
    try:
        config = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise LoadError(f"config.json must be JSON: {error}") from error
    if not isinstance(config, dict):
        raise LoadError(f"config.json must be a JSON object; got {type(config).__name__}")
    return shape_of(config)


def shape_of(config: Mapping[str, Any]) -> ModelShape:
    """Return the shape that a configuration describes.

    Raises:
        LoadError: a field is absent, out of bounds, or not supported.
    """
    family = check_supported(config)
    hidden, heads = size(config, "hidden_size"), size(config, "num_attention_heads")
    kv_heads = size(config, "num_key_value_heads", heads)
    head_dim = size(config, "head_dim", max(1, hidden // heads))
    layers = size(config, "num_hidden_layers")
    if heads % kv_heads:
        raise LoadError(
            f"num_attention_heads must be a multiple of num_key_value_heads; got {heads} and "
            f"{kv_heads}"
        )
    if head_dim % 2:
        raise LoadError(f"head_dim must be even; got {head_dim}")
    bias = bool(config.get("attention_bias", False))
    context = size(config, "max_position_embeddings")
    rope = _rope(config)
    return ModelShape(
        family=family,
        vocabulary=size(config, "vocab_size"),
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=size(config, "intermediate_size"),
        norm_eps=number(config, "rms_norm_eps", 1e-6),
        tied=bool(config.get("tie_word_embeddings", False)),
        qkv_bias=True if family == "qwen2" else bias and family != "mistral",
        output_bias=bias and family in ("llama", "qwen3"),
        mlp_bias=bool(config.get("mlp_bias", False)) and family == "llama",
        qk_norm=family == "qwen3",
        windows=_windows(config, family, layers, context),
        rope=rope,
        context_tokens=context,
        dtype=str(config.get("dtype") or config.get("torch_dtype") or "float32"),
    )


def _rope(config: Mapping[str, Any]) -> RopeShape:
    """Return the embedding; the older field, `rope_scaling`, takes precedence."""
    name = "rope_scaling" if config.get("rope_scaling") else "rope_parameters"
    scaling = config.get(name) or {}
    if not isinstance(scaling, dict):
        raise LoadError(f"{name} must be an object; got {type(scaling).__name__}")
    if any(isinstance(value, dict) for value in scaling.values()):
        raise LoadError(f"{name} must be the same for all layers; got one per kind of layer")
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind not in ROPE_KINDS:
        raise LoadError(f"rope_type must be one of {', '.join(ROPE_KINDS)}; got {kind!r}")
    if (part := scaling.get("partial_rotary_factor", 1)) not in (None, 1):
        raise LoadError(f"partial_rotary_factor must be absent; got {part!r:.40}")
    fields = config if "rope_theta" not in scaling else scaling
    theta = number(fields, "rope_theta", 10_000.0)
    if theta <= 1:
        raise LoadError(f"rope_theta must be above 1; got {theta}")
    if (trained := config.get("original_max_position_embeddings")) is not None:
        # Phi's place for it, which takes precedence in transformers
        scaling = scaling | {"original_max_position_embeddings": trained}
    return RopeShape(kind=kind, theta=theta, scaling=scaling)


def _windows(
    config: Mapping[str, Any], family: str, layers: int, context: int
) -> tuple[int | None, ...]:
    """Return each layer's window, by the rules of transformers' configurations.

    Raises:
        LoadError: Llama has no windows, and others only layers of two kinds.
    """
    usual = None if family == "llama" else USUAL_WINDOW
    window = config.get("sliding_window", usual)
    if family.startswith("qwen") and not config.get("use_sliding_window", False):
        window = None
    kinds = _attention_kinds(config, layers)
    if window is None:
        if kinds is not None and set(kinds) != {"full_attention"}:
            raise LoadError("sliding_window must be set for layer_types with sliding_attention")
        return (None,) * layers
    window = size(config, "sliding_window", usual)
    if family == "llama":
        if window < context:
            raise LoadError(
                f"sliding_window must be absent in a llama; got {window}: set model_type to "
                "mistral if the model was trained with it"
            )
        return (None,) * layers
    if kinds is not None:
        return tuple(window if kind == "sliding_attention" else None for kind in kinds)
    first = 0
    if family != "mistral":
        first = size(config, "max_window_layers", USUAL_FULL_LAYERS, least=0)
    return tuple(window if layer >= first else None for layer in range(layers))


def _attention_kinds(config: Mapping[str, Any], layers: int) -> Sequence[str] | None:
    kinds = config.get("layer_types")
    if kinds is None:
        return None
    if not isinstance(kinds, list) or len(kinds) != layers:
        raise LoadError(f"layer_types must be a list of num_hidden_layers kinds, {layers}")
    if other := [kind for kind in kinds if kind not in ATTENTION_KINDS]:
        raise LoadError(f"layer_types must be {' or '.join(ATTENTION_KINDS)}; got {other[0]!r:.40}")
    return kinds
