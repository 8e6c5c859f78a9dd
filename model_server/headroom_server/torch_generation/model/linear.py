"""The linear layers' weights: as they are, packed for the CPU, or int8 with a scale per channel.

A decode has one row per sequence, so the time of a product should be that of reading the weights
once. oneDNN comes close to that if it may arrange the weights in the blocks that its kernels read:
9 rows of float32 take 1.6 times as long as one, against 5 to 6 times with the usual call, and 256
rows 0.45 times as long (AVX-512, one thread, 2816 x 512). torch.compile uses these operators too.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch.nn import functional

PACKED_FOR_ROWS = 64
"""Rows for which oneDNN chooses the order. What it chooses for one row is slow for several."""


ROWS_STEP = 16
"""Above, rows are filled up to a multiple of it: oneDNN keeps a kernel of 0.26 MB for each number
of rows and size of weights, 673 MB for 1 to 512 rows of five sizes, and 153 MB with this."""

FEW_ROWS = 16
"""Up to this many rows the kernel for int8 is faster than converting the weights (75 against 650 us
for one row of 2816 x 512, 1330 against 780 us for 64)."""


class Linear(Protocol):
    """Multiplies the rows of a matrix by weights."""

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """Return rows times the transposed weights, plus the bias."""


class PlainLinear(NamedTuple):
    """Weights in the number format of the model."""

    weight: torch.Tensor
    bias: torch.Tensor | None

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """Multiply."""
        return functional.linear(rows, self.weight, self.bias)


class PackedLinear(NamedTuple):
    """Weights in oneDNN's own order. Nothing but the product can be computed with them."""

    weight: torch.Tensor
    bias: torch.Tensor | None

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """Multiply."""
        count = len(rows)
        missing = -count % ROWS_STEP if count > ROWS_STEP else 0
        if missing:
            rows = functional.pad(rows, (0, 0, 0, missing))
        product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
            rows, self.weight, self.bias, "none", [], ""
        )
        return product[:count] if missing else product


class Int8Linear(NamedTuple):
    """Weights as int8: a quarter of float32's memory, converted when they are used.

    The largest magnitude of a channel is 127, so the rounding error of a weight is at most 1/254 of
    the largest weight of its channel.
    """

    weight: torch.Tensor
    scale: torch.Tensor
    """Per output channel."""
    bias: torch.Tensor | None

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """Multiply by the integers, then scale the columns."""
        few = len(rows) <= FEW_ROWS and rows.dtype is torch.bfloat16
        if few and rows.device.type == "cpu":
            product = torch._weight_int8pack_mm(rows.contiguous(), self.weight, self.scale)
        else:
            product = functional.linear(rows, self.weight.to(rows.dtype)) * self.scale
        return product if self.bias is None else product + self.bias


def linear(weight: torch.Tensor, bias: torch.Tensor | None, *, int8: bool) -> Linear:
    """Return the layer of these weights."""
    if not int8:
        packed = _packed(weight)
        return PlainLinear(weight, bias) if packed is None else PackedLinear(packed, bias)
    largest = weight.abs().amax(dim=1, keepdim=True).float().clamp(min=1e-12)
    scale = largest / 127.0
    rounded = (weight.float() / scale).round().to(torch.int8)
    return Int8Linear(rounded, scale.squeeze(1).to(weight.dtype), bias)


def packs(dtype: torch.dtype, device: torch.device) -> bool:
    """Return whether weights are packed: a tied head is then a copy of the embedding."""
    return _packed(torch.zeros(16, 16, dtype=dtype, device=device)) is not None


def _packed(weight: torch.Tensor) -> torch.Tensor | None:
    """Return the weights in oneDNN's order; None where this processor or build has no kernels."""
    if weight.device.type != "cpu":
        return None
    try:
        found: torch.Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, PACKED_FOR_ROWS)
    except (RuntimeError, AttributeError):  # no kernels for this number format; another build
        return None
    return found
