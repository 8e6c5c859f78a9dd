"""A user's model: from four products and a price to the odds of a purchase."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file

from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec


class Purchase:
    """Two inputs of different types, two outputs, weights from the model's directory."""

    signature = Signature(
        inputs=(TensorSpec("seen", "INT64", (4,)), TensorSpec("price", "FP32")),
        outputs=(TensorSpec("odds", "FP32"), TensorSpec("likely", "BOOL")),
    )

    def load(self, directory: Path | None, device: torch.device) -> None:
        """Bring the weights to the device."""
        assert directory is not None
        self.weights = load_file(directory / "model.safetensors", device=str(device))
        self.device = device

    def preprocess(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Bring the inputs there too."""
        return {name: tensor.to(self.device) for name, tensor in inputs.items()}

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """One number per row: products that were seen raise it, the price lowers it."""
        taste = torch.nn.functional.embedding(batch["seen"], self.weights["products"]).mean(dim=1)
        return torch.sigmoid(taste @ self.weights["wish"] - batch["price"])

    def postprocess(self, result: torch.Tensor) -> dict[str, torch.Tensor]:
        """The number, and which side of a half it is on."""
        return {"odds": result, "likely": result > 0.5}
