"""Fields of a Hugging Face `config.json`: numbers within bounds, and what must not be there.

A field that changes what is computed, and that this engine does not know, is refused: without it
the model would answer, and wrongly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headroom_server.engine import LoadError

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
LARGEST = 1 << 24
"""Bound of every size: a number beyond it is a mistake, not a model."""
NEUTRAL: Mapping[str, tuple[object, ...]] = {
    "attention_multiplier": (None,),
    "attn_logit_softcapping": (None,),
    "embedding_multiplier": (None, 1),
    "final_logit_softcapping": (None,),
    "is_causal": (None, True),
    "logit_scale": (None, 1),
    "logits_scaling": (None, 1),
    "num_experts": (None, 0, 1),
    "num_local_experts": (None, 0, 1),
    "partial_rotary_factor": (None, 1),
    "residual_multiplier": (None, 1),
}
"""Fields of related models, and the values with which they compute as these families do."""


def check_supported(config: Mapping[str, Any]) -> str:
    """Return the family of a model that can be computed.

    Raises:
        LoadError: with the field that describes another computation.
    """
    family = config.get("model_type")
    if family not in FAMILIES:
        raise LoadError(f"model_type must be one of {', '.join(FAMILIES)}; got {family!r}")
    names = config.get("architectures")
    if names and not (
        isinstance(names, list) and any(str(name).endswith("ForCausalLM") for name in names)
    ):
        raise LoadError(f"architectures must have one that ends in ForCausalLM; got {names!r:.100}")
    if (act := config.get("hidden_act", "silu")) not in ("silu", "swish"):
        raise LoadError(f"hidden_act must be 'silu'; got {act!r}")
    for name in ("quantization_config", "compression_config"):
        if config.get(name):
            raise LoadError(f"{name} must be absent; convert the weights to bfloat16, or set int8")
    for name, values in NEUTRAL.items():
        if (found := config.get(name)) not in values:
            raise LoadError(
                f"{name} must be absent: this engine does not compute with it; got {found!r:.40}"
            )
    return str(family)


def size(config: Mapping[str, Any], name: str, default: int | None = None, least: int = 1) -> int:
    """Return a field that is a size.

    Raises:
        LoadError: it is none.
    """
    value = config.get(name)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST:
        raise LoadError(f"{name} must be an integer from {least} to {LARGEST}; got {value!r}")
    return value


def number(config: Mapping[str, Any], name: str, default: float) -> float:
    """Return a field that is a positive number.

    Raises:
        LoadError: it is none.
    """
    value = config.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        raise LoadError(f"{name} must be a positive number; got {value!r}")
    return float(value)
