"""What the torch engine executes: a class of the user's, or an architecture with its weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import torch

from headroom_server.tensors import Signature

Tensors = dict[str, torch.Tensor]


class TorchModel(Protocol):
    """Batches come as one tensor per declared input, the batch dimension first.

    All methods are called on the device thread, `forward` under `torch.inference_mode()`.
    """

    signature: Signature
    """Known once `load` has returned."""

    def load(self, directory: Path | None, device: torch.device) -> None:
        """Read what is needed from the model's directory (None: there is none) onto the device."""

    def preprocess(self, inputs: Tensors) -> Any:
        """From the declared inputs, on the CPU, to what `forward` takes, on the device."""

    def forward(self, batch: Any) -> Any:
        """Compute."""

    def postprocess(self, result: Any) -> Tensors:
        """From what `forward` gave to the declared outputs."""
