"""Triton's Python backend: one instance, dynamic batching with 8 items and no delay.

It embeds an isolated Python, whose path gets the packages and the sleeping model here.
"""

from __future__ import annotations

import os
import sys
from typing import Any

sys.path[:0] = os.environ["PYTHONPATH"].split(":")

import numpy as np  # noqa: E402
import triton_python_backend_utils as triton  # noqa: E402
from sleeping import Device  # noqa: E402


class TritonPythonModel:
    """Tensors in, tensors out."""

    def initialize(self, args: dict[str, str]) -> None:
        """Called before ready."""
        self._sleeper = Device()

    def execute(self, requests: list[Any]) -> list[Any]:
        """One batch."""
        rows = [triton.get_input_tensor_by_name(one, "x").as_numpy() for one in requests]
        self._sleeper.spend(sum(len(one) for one in rows))
        return [
            triton.InferenceResponse([triton.Tensor("sum", one.sum(axis=1, dtype=np.float64))])
            for one in rows
        ]
