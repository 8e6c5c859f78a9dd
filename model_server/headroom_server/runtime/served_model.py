"""A served version of a model, and how its requests are encoded."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from headroom_server.errors import InvalidRequestError, RefusedError
from headroom_server.protocols.body_bounds import BodyBounds
from headroom_server.protocols.contract import Contract
from headroom_server.protocols.typed_json import TypedJsonCodec
from headroom_server.runtime.batching.runner import Runner
from headroom_server.signature import Signature


class ModelCodecs:
    """Encodings of requests to a loaded model."""

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.bounds = BodyBounds(contract.signature, contract.max_items)
        self.typed = TypedJsonCodec(contract)


class ServedModel:
    """One version of one model."""

    def __init__(self, runner: Runner, version: str = "1") -> None:
        self.runner = runner
        self.name = runner.model
        self.version = version
        self._codecs: ModelCodecs | None = None

    def count_invalid(self, error: InvalidRequestError) -> None:
        """Count an invalid request with this model."""
        self.runner.ledger.reject(error.reason)
        error.counted = True

    @property
    def signature(self) -> Signature:
        """The model's inputs and outputs.

        Raises:
            RefusedError: the model is not loaded yet.
        """
        if self.runner.signature is None:
            raise RefusedError("this replica is not ready", retry_after_s=1)
        return self.runner.signature

    @property
    def codecs(self) -> ModelCodecs | None:
        """None until the model is loaded and warm."""
        if self._codecs is None and self.runner.signature is not None:
            limits = self.runner.limits
            self._codecs = ModelCodecs(Contract(self.runner.signature, limits.max_batch_size))
        return self._codecs


class ModelVersion(NamedTuple):
    """One version of a model, and a function that builds its runner without loading it."""

    name: str
    number: int
    build: Callable[[], Runner]


class ModelState(StrEnum):
    """The state of a version, as the repository extension names it."""

    READY = "READY"
    LOADING = "LOADING"
    UNLOADING = "UNLOADING"
    UNAVAILABLE = "UNAVAILABLE"


class LoadFailedError(Exception):
    """A model did not become warm at run time; what was served before still is."""
