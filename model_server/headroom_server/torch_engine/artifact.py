"""A registered architecture with safetensors weights, as described by `model.toml`."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from headroom_server.engine import LoadError
from headroom_server.signature import Signature
from headroom_server.torch_engine.model import Tensors


class ArtifactModel:
    """One input, one output, no pre- or postprocessing."""

    def __init__(self, module: nn.Module, signature: Signature, weights: Path) -> None:
        self._module = module
        self.signature = signature
        self._weights = weights
        self._device = torch.device("cpu")

    def load(self, directory: Path | None, device: torch.device) -> None:
        """Load the weights and move the module to the device.

        Raises:
            LoadError: the file does not contain them.
        """
        try:
            self._module.load_state_dict(load_file(self._weights, device="cpu"))
        except (OSError, SafetensorError, RuntimeError) as error:
            raise LoadError(f"{self._weights.name}: {error}") from error
        self._module, self._device = self._module.eval().to(device), device

    def preprocess(self, inputs: Tensors) -> torch.Tensor:
        """Return the one input, on the device."""
        (batch,) = inputs.values()
        return batch.to(self._device, non_blocking=True)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Run the module."""
        result: torch.Tensor = self._module(batch)
        return result

    def postprocess(self, result: torch.Tensor) -> Tensors:
        """Return the one output under its declared name."""
        return {self.signature.outputs[0].name: result}
