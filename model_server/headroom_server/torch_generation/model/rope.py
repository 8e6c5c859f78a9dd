"""Tables of the rotary position embedding, for every kind of scaling that is supported.

Su et al. 2021 (RoPE); `linear` divides positions (Chen et al. 2023); `llama3` scales by wavelength
(Meta 2024); `yarn` blends by wavelength and scales attention (Peng et al. 2023). `dynamic` changes
the base beyond the trained context only, which is also where this engine ends: it is the default.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from headroom_server.engine import LoadError
from headroom_server.torch_generation.model.model_shape import ModelShape

LEAST, MOST = 1e-6, 1e9
"""Bounds of a scaling's parameters: beyond them angles are infinite, in float32 or in between."""


class RopeTables(NamedTuple):
    """Rows by position: x * cos + swapped(x) * sin, where `swapped` exchanges the halves of x."""

    cos: torch.Tensor
    sin: torch.Tensor
    """With the sign of the rotation: negative for the first half."""


def rope_tables(
    shape: ModelShape, positions: int, dtype: torch.dtype, device: torch.device
) -> RopeTables:
    """Compute the tables of positions 0 to `positions` - 1, in float32 and then rounded.

    Raises:
        LoadError: a parameter of the scaling is absent or out of bounds.
    """
    frequencies, scale = inverse_frequencies(shape)
    angles = torch.outer(torch.arange(positions, dtype=torch.float32), frequencies)
    cos, sin = angles.cos() * scale, angles.sin() * scale
    return RopeTables(
        torch.cat((cos, cos), -1).to(device, dtype).unsqueeze(1),
        torch.cat((-sin, sin), -1).to(device, dtype).unsqueeze(1),
    )


def inverse_frequencies(shape: ModelShape) -> tuple[torch.Tensor, float]:
    """Return the angle per position of each pair, and the factor of cosine and sine."""
    rope, size = shape.rope, shape.head_dim
    exponents = torch.arange(0, size, 2, dtype=torch.int64).to(torch.float32) / size
    plain = 1.0 / rope.theta**exponents
    if rope.kind in ("default", "dynamic"):
        return plain, 1.0
    factor = _parameter(rope.scaling, "factor")
    if rope.kind == "linear":
        return plain / factor, 1.0
    if rope.kind == "llama3":
        return _llama3(plain, factor, shape), 1.0
    return _yarn(plain, factor, shape)


def _llama3(plain: torch.Tensor, factor: float, shape: ModelShape) -> torch.Tensor:
    scaling = shape.rope.scaling
    low = _parameter(scaling, "low_freq_factor")
    high = _parameter(scaling, "high_freq_factor")
    trained = _trained_tokens(shape)
    if high <= low:
        raise LoadError(f"high_freq_factor must be above low_freq_factor; got {high} and {low}")
    wavelength = 2 * math.pi / plain
    smooth = ((trained / wavelength - low) / (high - low)).clamp(0.0, 1.0)
    return (1 - smooth) * plain / factor + smooth * plain


def _yarn(plain: torch.Tensor, factor: float, shape: ModelShape) -> tuple[torch.Tensor, float]:
    scaling, size, theta = shape.rope.scaling, shape.head_dim, shape.rope.theta
    fast = _parameter(scaling, "beta_fast", 32.0)
    slow = _parameter(scaling, "beta_slow", 1.0)
    trained = _trained_tokens(shape)

    def dimension(rotations: float) -> float:
        return size * math.log(trained / (rotations * 2 * math.pi)) / (2 * math.log(theta))

    low, high = dimension(fast), dimension(slow)
    if scaling.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, size - 1)
    ramp = (torch.arange(size // 2, dtype=torch.float32) - low) / max(high - low, 0.001)
    kept = 1 - ramp.clamp(0.0, 1.0)
    usual = _yarn_scale(factor, scaling)
    scale = _parameter(scaling, "attention_factor", usual)
    return plain / factor * (1 - kept) + plain * kept, scale


def _yarn_scale(factor: float, scaling: Mapping[str, Any]) -> float:
    def scale(weight: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    if scaling.get("mscale") and scaling.get("mscale_all_dim"):
        both = (_parameter(scaling, name) for name in ("mscale", "mscale_all_dim"))
        first, all_dimensions = map(scale, both)
        return first / all_dimensions
    return scale(1.0)


def _trained_tokens(shape: ModelShape) -> float:
    name = "original_max_position_embeddings"
    return _parameter(shape.rope.scaling, name, float(shape.context_tokens))


def _parameter(scaling: Mapping[str, Any], name: str, default: float | None = None) -> float:
    value = scaling.get(name)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int | float) or not LEAST <= value < MOST:
        raise LoadError(
            f"rope_scaling.{name} must be a number from {LEAST:g} to below {MOST:g}; "
            f"got {value!r:.40}"
        )
    return float(value)
