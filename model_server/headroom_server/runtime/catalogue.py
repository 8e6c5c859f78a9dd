"""The models that the protocols can reach, and the forms that their requests have."""

from __future__ import annotations

from headroom_server.errors import InvalidRequestError, RefusedError
from headroom_server.protocols.contract import Contract
from headroom_server.protocols.typed_json import TypedForm
from headroom_server.runtime.runner import Runner
from headroom_server.tensors import Signature


class Forms:
    """How requests to a loaded model are written."""

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.typed = TypedForm(contract)


class Served:
    """One version of one model."""

    def __init__(self, runner: Runner, version: str = "1") -> None:
        self.runner = runner
        self.name = runner.model
        self.version = version
        self._forms: Forms | None = None

    def blame(self, error: InvalidRequestError) -> None:
        """Count bad input with this model."""
        self.runner.ledger.reject(error.reason)
        error.blamed = True

    @property
    def signature(self) -> Signature:
        """What the model takes and gives.

        Raises:
            RefusedError: where it is not loaded yet.
        """
        if self.runner.signature is None:
            raise RefusedError("this replica is not ready", retry_after_s=1)
        return self.runner.signature

    @property
    def forms(self) -> Forms | None:
        """None until the model is loaded and warm."""
        if self._forms is None and self.runner.signature is not None:
            limits = self.runner.limits
            self._forms = Forms(Contract(self.runner.signature, limits.max_batch_size))
        return self._forms
