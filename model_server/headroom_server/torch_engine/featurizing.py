"""A model's features: what it computes from one request's inputs on the host, before the batch."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from headroom_server.engine import LoadError, Work
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec
from headroom_server.torch_engine.collecting import Slots, collect
from headroom_server.torch_engine.dealing import deal
from headroom_server.torch_engine.errors import translated
from headroom_server.torch_engine.transfers import CpuTransfers


class Featurizer:
    """Computes features, on any thread, several at a time."""

    def __init__(self, model: Any, signature: Signature) -> None:
        """Check what the model declares.

        Raises:
            LoadError: features and dimensions do not fit together.
        """
        features = model.features
        if not isinstance(features, tuple) or not all(
            isinstance(one, TensorSpec) for one in features
        ):
            raise LoadError(f"features must be a tuple of TensorSpec; got {features!r:.200}")
        try:
            self.signature = dataclasses.replace(signature, inputs=features)
        except ValueError as error:
            raise LoadError(f"features: {error}") from error
        self._featurize = model.featurize
        self._declared = signature
        self._slots = Slots(signature, CpuTransfers().memory)

    def featured(self, work: Work) -> Work:
        """Return the request with its features in place of its inputs.

        Raises:
            ValueError: the model returned other tensors than it declares.
        """
        if work.featured:
            return work
        slot = self._slots.take(work.items, work.length)
        try:
            collect(slot, self._declared, [work], work.items)
            with translated(), torch.inference_mode():
                found = self._featurize(slot.batch(work.items))
                features = {
                    spec.name: deal(spec, found, [work], rows=work.items, length=work.length)[0]
                    for spec in self.signature.inputs
                }
        finally:
            self._slots.give(slot)
        return Work(work.items, features, work.length, featured=True)


def featurizer_of(model: object, signature: Signature, *, required: bool) -> Featurizer | None:
    """Return what computes a model's features; None if it has none.

    Raises:
        LoadError: it declares them only in part, or has none and they are required.
    """
    declared, able = hasattr(model, "features"), callable(getattr(model, "featurize", None))
    if declared != able:
        raise LoadError(
            "a model must have both features and featurize, or neither; it lacks "
            f"{'featurize' if declared else 'features'}"
        )
    if able:
        return Featurizer(model, signature)
    if required:
        raise LoadError(
            "HEADROOM_FEATURE_CACHE_BYTES must be unset unless every class has features and "
            f"featurize; {type(model).__name__} has none: HEADROOM_CACHE_BYTES keeps the answers "
            "to equal requests"
        )
    return None
