"""A registered architecture with safetensors weights, described by `model.toml` beside them.

    architecture = "mlp"
    weights = "model.safetensors"        # the default

    [parameters]
    sizes = [4, 16, 3]

Pickles (`.pt`, `.pth`, `.bin`, `.pkl`, `.pt2`) are refused: reading one runs whatever it says.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from headroom_server.engine import LoadError
from headroom_server.tensors import Signature
from headroom_server.torch_engine.architectures import build
from headroom_server.torch_engine.model import Tensors

DESCRIPTION = "model.toml"
FIELDS = {"architecture", "weights", "parameters"}


class ArtifactModel:
    """One input, one output, nothing before or after."""

    signature: Signature

    def __init__(self) -> None:
        self._module: nn.Module = nn.Identity()
        self._device = torch.device("cpu")

    def load(self, directory: Path | None, device: torch.device) -> None:
        """Read the description, make the architecture, fill in the weights.

        Raises:
            LoadError: naming file, field and rule.
        """
        if directory is None:
            raise LoadError(
                "HEADROOM_MODEL_URI names the directory with model.toml, or HEADROOM_MODEL_CLASS a "
                "class; both are empty"
            )
        description = _description(directory / DESCRIPTION)
        module, self.signature = build(
            description["architecture"], description.get("parameters", {})
        )
        weights = _weights(directory, description.get("weights", "model.safetensors"))
        try:
            module.load_state_dict(load_file(weights, device="cpu"))
        except (OSError, SafetensorError, RuntimeError) as error:
            raise LoadError(f"{weights.name}: {error}") from error
        self._module, self._device = module.eval().to(device), device

    def preprocess(self, inputs: Tensors) -> torch.Tensor:
        """The one input, on the device."""
        (batch,) = inputs.values()
        return batch.to(self._device, non_blocking=True)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """The module's answer."""
        result: torch.Tensor = self._module(batch)
        return result

    def postprocess(self, result: torch.Tensor) -> Tensors:
        """The one output under its declared name."""
        return {self.signature.outputs[0].name: result}


def _description(path: Path) -> dict[str, Any]:
    try:
        description = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LoadError(f"{path}: {error}") from error
    if unknown := sorted(description.keys() - FIELDS):
        raise LoadError(f"{path}: fields are {sorted(FIELDS)}; got {unknown}")
    for field, kind in (("architecture", str), ("weights", str), ("parameters", dict)):
        if field in description and not isinstance(description[field], kind):
            raise LoadError(f"{path}: {field} is a {kind.__name__}; got {description[field]!r}")
    if "architecture" not in description:
        raise LoadError(f"{path}: architecture is required")
    return description


def _weights(directory: Path, name: str) -> Path:
    if Path(name).name != name or not name.endswith(".safetensors"):
        raise LoadError(
            f"weights: the name of a .safetensors file beside {DESCRIPTION}, since a pickle runs "
            f"code when it is read; got {name!r}"
        )
    return directory / name
