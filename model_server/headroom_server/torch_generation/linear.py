"""The linear layers' weights: as they are, or as int8 with a scale per output channel."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch.nn import functional


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
        if rows.dtype is torch.bfloat16 and rows.device.type == "cpu":
            product = torch._weight_int8pack_mm(rows.contiguous(), self.weight, self.scale)
        else:
            product = functional.linear(rows, self.weight.to(rows.dtype)) * self.scale
        return product if self.bias is None else product + self.bias


def linear(weight: torch.Tensor, bias: torch.Tensor | None, *, int8: bool) -> Linear:
    """Return the layer of these weights."""
    if not int8:
        return PlainLinear(weight, bias)
    largest = weight.abs().amax(dim=1, keepdim=True).float().clamp(min=1e-12)
    scale = largest / 127.0
    rounded = (weight.float() / scale).round().to(torch.int8)
    return Int8Linear(rounded, scale.squeeze(1).to(weight.dtype), bias)
