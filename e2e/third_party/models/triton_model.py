"""Triton's Python backend: one instance with dynamic batching."""

from __future__ import annotations

import sys
from typing import Any

sys.path[:0] = ["/models", "/opt/venv/lib/python3.11/site-packages"]

import numpy as np  # noqa: E402
import triton_python_backend_utils as triton  # noqa: E402
from cold_device import ColdDevice  # noqa: E402


class TritonPythonModel:
    """Tensors in, tensors out."""

    def initialize(self, args: dict[str, str]) -> None:
        """Called before ready."""
        self._device = ColdDevice()

    def execute(self, requests: list[Any]) -> list[Any]:
        """One batch."""
        rows = [triton.get_input_tensor_by_name(one, "x").as_numpy() for one in requests]
        self._device.spend(sum(len(one) for one in rows))
        return [
            triton.InferenceResponse([triton.Tensor("sum", one.sum(axis=1, dtype=np.float64))])
            for one in rows
        ]
