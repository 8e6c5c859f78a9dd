"""The number formats of weights, keys and values, by their name in settings and checkpoints."""

from __future__ import annotations

from types import MappingProxyType

import torch

DTYPES = MappingProxyType(
    {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
)
