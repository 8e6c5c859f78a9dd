"""Architectures that weights may name, and what each takes and gives.

Weights are data and an architecture is code: only registered code is run. A builder gets the
`parameters` of the model description and returns the module and its signature.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import pairwise

from torch import nn

from headroom_server.engine import LoadError
from headroom_server.tensors import Signature, TensorSpec

Builder = Callable[..., tuple[nn.Module, Signature]]

_REGISTRY: dict[str, Builder] = {}


def register(name: str) -> Callable[[Builder], Builder]:
    """Offer a builder under a name.

    Raises:
        ValueError: where the name is taken.
    """

    def add(builder: Builder) -> Builder:
        if name in _REGISTRY:
            raise ValueError(f"an architecture is registered once; {name!r} already is")
        _REGISTRY[name] = builder
        return builder

    return add


def build(name: str, parameters: dict[str, object]) -> tuple[nn.Module, Signature]:
    """Make a registered architecture.

    Raises:
        LoadError: for an unknown name, or parameters that its builder does not take.
    """
    if name not in _REGISTRY:
        raise LoadError(f"architecture: one of {sorted(_REGISTRY)}; got {name!r}")
    builder = _REGISTRY[name]
    try:
        return builder(**parameters)
    except (TypeError, ValueError) as error:
        takes = inspect.signature(builder)
        raise LoadError(f"architecture {name} takes {takes}; got {parameters}: {error}") from error


@register("mlp")
def mlp(*, sizes: list[int]) -> tuple[nn.Module, Signature]:
    """Linear layers of these widths, input and output included, with ReLU between them."""
    if len(sizes) < 2 or any(type(size) is not int or size < 1 for size in sizes):
        raise ValueError("sizes are two or more widths of at least 1")
    layers: list[nn.Module] = []
    for width, following in pairwise(sizes):
        layers += [nn.Linear(width, following), nn.ReLU()]
    signature = Signature(
        inputs=(TensorSpec("x", "FP32", (sizes[0],)),),
        outputs=(TensorSpec("y", "FP32", (sizes[-1],)),),
    )
    return nn.Sequential(*layers[:-1]), signature


@register("convnet")
def convnet(*, channels: list[int], image: list[int], classes: int) -> tuple[nn.Module, Signature]:
    """3x3 convolutions of these channel counts, each halving the image, a mean, a linear layer.

    `channels` begins with those of the input; `image` is [height, width].
    """
    numbers = [*channels, *image, classes]
    if len(channels) < 2 or len(image) != 2 or any(type(n) is not int or n < 1 for n in numbers):
        raise ValueError("channels are two or more, image is [height, width], all at least 1")
    layers: list[nn.Module] = []
    for width, following in pairwise(channels):
        layers += [nn.Conv2d(width, following, 3, stride=2, padding=1), nn.ReLU()]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels[-1], classes)]
    signature = Signature(
        inputs=(TensorSpec("image", "FP32", (channels[0], *image)),),
        outputs=(TensorSpec("logits", "FP32", (classes,)),),
    )
    return nn.Sequential(*layers), signature
