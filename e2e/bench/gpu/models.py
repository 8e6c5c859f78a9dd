"""A ResNet-50-class network and a BERT-base-class encoder in plain torch, with random weights.

Their cost is that of the originals: same layers, widths and input sizes. On a CPU they are made
tiny, to show that the measuring works.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a model and of its batches."""

    width: int
    """Channels of the first stage, or of a token."""
    depths: tuple[int, ...]
    """Blocks of each stage, or the number of layers."""
    extent: int
    """Height and width of an image, or tokens."""
    batches: tuple[int, ...]


RESNET_50 = Size(64, (3, 4, 6, 3), 224, (1, 2, 4, 8, 16, 32, 64))
BERT_BASE = Size(768, (12,), 128, (1, 2, 4, 8, 16, 32, 64))
TINY_RESNET = Size(16, (1, 1), 64, (1, 2, 4, 8))
TINY_BERT = Size(128, (1,), 64, (1, 2, 4, 8))

VOCABULARY = 30_522
HEAD = 64
CLASSES = 1000


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 and a shortcut; the output is four times as wide."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
            nn.Conv2d(width, width, 3, stride, padding=1, bias=False),
            *(nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels != 4 * width:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
            )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The block."""
        return torch.relu(self.body(images) + self.shortcut(images))


def resnet(size: Size) -> nn.Module:
    """Stem, stages of bottlenecks, mean, linear layer."""
    layers: list[nn.Module] = [
        *(nn.Conv2d(3, size.width, 7, 2, padding=3, bias=False), nn.BatchNorm2d(size.width)),
        *(nn.ReLU(), nn.MaxPool2d(3, 2, padding=1)),
    ]
    channels = size.width
    for stage, depth in enumerate(size.depths):
        width = size.width * 2**stage
        for block in range(depth):
            layers.append(Bottleneck(channels, width, 2 if stage and not block else 1))
            channels = 4 * width
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES)
    )


class Encoder(nn.Module):
    """Embeddings, transformer layers, and two classes from the first token."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, size.width)
        self.places = nn.Parameter(torch.randn(size.extent, size.width) * 0.02)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                size.width,
                max(1, size.width // HEAD),
                4 * size.width,
                activation="gelu",
                batch_first=True,
                dropout=0.0,
            )
            for _ in range(size.depths[0])
        )
        self.head = nn.Linear(size.width, 2)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Two numbers for each text."""
        hidden = self.tokens(tokens) + self.places
        for layer in self.layers:
            hidden = layer(hidden)
        scores: torch.Tensor = self.head(hidden[:, 0])
        return scores


class BenchModel:
    """One of the two networks, with the methods that the server calls."""

    wants_compile = False

    def __init__(self, name: str, size: Size) -> None:
        self.name = name
        self.size = size
        spec = (
            TensorSpec("image", "FP32", (3, size.extent, size.extent))
            if name == "resnet"
            else TensorSpec("tokens", "INT64", (size.extent,))
        )
        outputs = CLASSES if name == "resnet" else 2
        self.signature = Signature(
            inputs=(spec,),
            outputs=(TensorSpec("scores", "FP32", (outputs,)),),
            batches=size.batches,
        )
        self._module: nn.Module = nn.Identity()
        self._device = torch.device("cpu")

    def load(self, directory: Path | None, device: torch.device) -> None:
        """Random weights, always the same."""
        torch.manual_seed(0)
        module = resnet(self.size) if self.name == "resnet" else Encoder(self.size)
        self._module, self._device = module.eval().to(device), device

    def preprocess(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the only input, on the device."""
        (batch,) = inputs.values()
        return batch.to(self._device, non_blocking=True)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """The scores."""
        scores: torch.Tensor = self._module(batch)
        return scores

    def postprocess(self, result: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the scores under their name."""
        return {"scores": result}


def models(*, full: bool) -> tuple[BenchModel, BenchModel]:
    """Return both models, of full size or tiny."""
    if full:
        return BenchModel("resnet", RESNET_50), BenchModel("bert", BERT_BASE)
    return BenchModel("resnet", TINY_RESNET), BenchModel("bert", TINY_BERT)
