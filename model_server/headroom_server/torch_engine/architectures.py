"""Registered architectures, built as torch modules from the torch-free layouts.

Weights are data and an architecture is code: only registered code runs. A builder gets the
`parameters` of the model description and returns the module and its signature.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from torch import nn

from headroom_server.engine import LoadError
from headroom_server.repository import layouts
from headroom_server.signature import Signature

Builder = Callable[..., tuple[nn.Module, Signature]]

_REGISTRY: dict[str, Builder] = {}


def register(name: str) -> Callable[[Builder], Builder]:
    """Register a builder under a name.

    Raises:
        ValueError: the name is taken.
    """

    def add(builder: Builder) -> Builder:
        if name in _REGISTRY:
            raise ValueError(
                f"the name of an architecture must be unique; {name!r} is already registered"
            )
        _REGISTRY[name] = builder
        return builder

    return add


def build(name: str, parameters: Mapping[str, Any]) -> tuple[nn.Module, Signature]:
    """Build a registered architecture.

    Raises:
        LoadError: unknown name, or parameters that its builder does not accept.
    """
    if name not in _REGISTRY:
        raise LoadError(
            f"architecture must be one of {sorted(_REGISTRY)}, or module:Class; got {name!r}"
        )
    layouts.layout(name, parameters)
    builder = _REGISTRY[name]
    try:
        return builder(**parameters)
    except (TypeError, ValueError) as error:
        raise LoadError(
            f"parameters: architecture {name} takes {inspect.signature(builder)}; got "
            f"{dict(parameters)!s:.200}: {error}"
        ) from error


@register("mlp")
def mlp(*, sizes: list[int]) -> tuple[nn.Module, Signature]:
    """Build `layouts.mlp` as a module."""
    layers: list[nn.Module] = []
    for width, following in pairwise(sizes):
        layers += [nn.Linear(width, following), nn.ReLU()]
    return nn.Sequential(*layers[:-1]), layouts.mlp(sizes=sizes).signature


@register("convnet")
def convnet(*, channels: list[int], image: list[int], classes: int) -> tuple[nn.Module, Signature]:
    """Build `layouts.convnet` as a module."""
    layers: list[nn.Module] = []
    for width, following in pairwise(channels):
        layers += [nn.Conv2d(width, following, 3, stride=2, padding=1), nn.ReLU()]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels[-1], classes)]
    layout = layouts.convnet(channels=channels, image=image, classes=classes)
    return nn.Sequential(*layers), layout.signature
