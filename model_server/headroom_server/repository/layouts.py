"""Inputs, outputs and weights of the registered architectures, without torch. Pure.

A layout is a function of the description's `parameters`; it checks them and returns the signature
and the names and shapes of the weights. torch builds its modules from the same functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from headroom_server.engine import LoadError
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec


class Layout(NamedTuple):
    """An architecture with its parameters."""

    signature: Signature
    weights: Mapping[str, tuple[int, ...]]


def mlp(*, sizes: list[int]) -> Layout:
    """Linear layers of these widths, input and output included, with ReLU between them."""
    if not _whole(sizes, at_least=2):
        raise ValueError("sizes must be two or more widths of at least 1")
    weights: dict[str, tuple[int, ...]] = {}
    for layer, (width, following) in enumerate(pairwise(sizes)):
        weights[f"{2 * layer}.weight"] = (following, width)
        weights[f"{2 * layer}.bias"] = (following,)
    signature = Signature(
        inputs=(TensorSpec("x", "FP32", (sizes[0],)),),
        outputs=(TensorSpec("y", "FP32", (sizes[-1],)),),
    )
    return Layout(signature, weights)


def convnet(*, channels: list[int], image: list[int], classes: int) -> Layout:
    """3x3 convolutions of these channel counts, each halving the image, a mean, a linear layer.

    `channels` begins with those of the input; `image` is [height, width].
    """
    if not (_whole(channels, at_least=2) and _whole(image, at_least=2) and _whole([classes])):
        raise ValueError(
            "channels must be two or more, image must be [height, width], all at least 1"
        )
    if len(image) != 2:
        raise ValueError("image must be [height, width]")
    weights: dict[str, tuple[int, ...]] = {}
    for layer, (width, following) in enumerate(pairwise(channels)):
        weights[f"{2 * layer}.weight"] = (following, width, 3, 3)
        weights[f"{2 * layer}.bias"] = (following,)
    last = 2 * (len(channels) - 1) + 2  # after the mean and the flattening
    weights[f"{last}.weight"], weights[f"{last}.bias"] = (classes, channels[-1]), (classes,)
    signature = Signature(
        inputs=(TensorSpec("image", "FP32", (channels[0], *image)),),
        outputs=(TensorSpec("logits", "FP32", (classes,)),),
    )
    return Layout(signature, weights)


LAYOUTS: Mapping[str, Callable[..., Layout]] = {"convnet": convnet, "mlp": mlp}


def layout(name: str, parameters: Mapping[str, Any]) -> Layout | None:
    """Return the layout of an architecture; None for one that only torch knows.

    Raises:
        LoadError: invalid parameters.
    """
    function = LAYOUTS.get(name)
    if function is None:
        return None
    try:
        return function(**parameters)
    except (TypeError, ValueError) as error:
        raise LoadError(
            f"parameters: architecture {name} takes {inspect.signature(function)}; got "
            f"{dict(parameters)!s:.200}: {error}"
        ) from error


def _whole(numbers: object, at_least: int = 1) -> bool:
    return (
        isinstance(numbers, list)
        and len(numbers) >= at_least
        and all(type(number) is int and 1 <= number <= 2**31 for number in numbers)
    )
