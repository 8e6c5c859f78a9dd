"""Loads a model from its description or class, and checks its signature."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

import torch

from headroom_server.engine import LoadError
from headroom_server.repository import folder
from headroom_server.repository.description import Description
from headroom_server.repository.formats import untrusted_class
from headroom_server.repository.signatures import agreed
from headroom_server.signature import Signature
from headroom_server.torch_engine.architectures import build
from headroom_server.torch_engine.artifact import ArtifactModel
from headroom_server.torch_engine.model import TorchModel
from headroom_server.torch_engine.program import ProgramModel

METHODS = ("load", "preprocess", "forward", "postprocess")


class Loaded(NamedTuple):
    """A model on its device, and its signature."""

    model: TorchModel
    signature: Signature


Load = Callable[[torch.device], Loaded]


@dataclass(frozen=True, slots=True)
class DescribedModel:
    """One version of a model in a repository; calling it loads."""

    root: Path
    """The repository, which files must not leave."""
    directory: Path
    description: Description
    trusted: bool
    """Whether the server permits this repository to run code."""

    def __call__(self, device: torch.device) -> Loaded:
        """Load the model to the device.

        Raises:
            LoadError: with file, field and rule.
        """
        model = self._model()
        model.load(self.directory, device)
        signature = signature_of(model, f"architecture: {self.description.architecture}")
        return Loaded(model, agreed(self.description, signature))

    def _model(self) -> TorchModel:
        one = self.description
        if one.architecture is not None and one.is_class:
            reason = untrusted_class(one.architecture, trusted=self.trusted)
            if reason is not None:
                raise LoadError(reason)
            if one.weights or one.sha256:
                self._weights()
            return instance(one.architecture, "architecture")
        if one.format.is_program:
            # it reads and checks its bytes in one step
            path = folder.weights(self.root, self.directory, one.weights_name)
            return ProgramModel(one, path, trusted=self.trusted)
        assert one.architecture is not None
        module, signature = build(one.architecture, one.parameters)
        return ArtifactModel(module, signature, self._weights())

    def _weights(self) -> Path:
        path = folder.weights(self.root, self.directory, self.description.weights_name)
        if self.description.sha256 is not None:
            folder.check_digest(path.name, folder.sha256(path), self.description.sha256)
        return path


@dataclass(frozen=True, slots=True)
class ClassModel:
    """A class that the server's setting names, without a description; calling it loads."""

    path: str
    directory: Path | None

    def __call__(self, device: torch.device) -> Loaded:
        """Create an instance and load it.

        Raises:
            LoadError: the class cannot be imported, or is not a model.
        """
        model = instance(self.path, "HEADROOM_MODEL_CLASS")
        model.load(self.directory, device)
        return Loaded(model, signature_of(model, f"HEADROOM_MODEL_CLASS: {self.path}"))


def signature_of(model: TorchModel, where: str) -> Signature:
    """Return the signature of a model that was loaded.

    Raises:
        LoadError: it has none.
    """
    signature = getattr(model, "signature", None)
    if not isinstance(signature, Signature):
        raise LoadError(
            f"{where} must have a `signature`, a headroom_server.signature.Signature, after "
            f"`load`; got {type(signature).__name__}"
        )
    return signature


def instance(path: str, where: str) -> TorchModel:
    """Create an instance of the class `module:Class` from the server's own import path.

    The setting or a trusted repository names it. Only a class with a model's methods is called,
    and nothing is imported from the repository's folder.

    Raises:
        LoadError: the class does not exist, or its module ends the program when it is imported.
    """
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise LoadError(f"{where}: {path} cannot be imported: {error}") from error
    except (Exception, SystemExit) as error:  # the module runs, and its words may leak
        said = f"its module raised {type(error).__name__}"
        raise LoadError(f"{where}: {path} cannot be imported: {said}") from error
    lacking = [method for method in METHODS if not callable(getattr(found, method, None))]
    if not isinstance(found, type) or lacking:
        raise LoadError(
            f"{where}: {path} must be a class with {', '.join(METHODS)}; it lacks "
            f"{lacking or 'a type'}"
        )
    return cast("Callable[[], TorchModel]", found)()
