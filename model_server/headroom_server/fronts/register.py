"""In the device process: which models the fronts are told of, and whom their requests reach."""

from __future__ import annotations

import itertools

from headroom_server.errors import UnknownModelError
from headroom_server.fronts import catalogue
from headroom_server.fronts.catalogue import Known
from headroom_server.runtime.catalogue import Served
from headroom_server.runtime.registry import Models


class Register:
    """Numbers the models that take requests and keep no answers.

    A front knows a little later that a model came or went. What it sends meanwhile goes to the
    version that took the place of the one it meant, if that takes the same requests.
    """

    def __init__(self, models: Models, *, hidden: bool = False) -> None:
        """`hidden`: the fronts are told of none, so that all requests come as connections."""
        self.models = models
        self._hidden = hidden
        self._numbers = itertools.count()
        self._live: dict[int, Served] = {}
        self._known: dict[int, Known] = {}
        """All that ever were told."""
        self._seen: object = None
        self.told: bytes = b""
        """The catalogue as it is now."""

    def look(self) -> bool:
        """Whether the catalogue has changed."""
        self._seen = self.models.all()
        before = {id(served): number for number, served in self._live.items()}
        self._live = {
            before[id(one)] if id(one) in before else next(self._numbers): one
            for one in self.models.all()
            if not (self._hidden or one.runner.keeps_answers or one.runner.signature is None)
        }
        known = [self._described(number, one) for number, one in self._live.items()]
        self._known |= {one.number: one for one in known}
        told = catalogue.dumps(known)
        changed, self.told = told != self.told, told
        return changed

    def find(self, number: int) -> Served:
        """The model of this number, or its successor.

        Raises:
            RequestError: where it is gone, or takes other requests now.
        """
        if self.models.all() is not self._seen:
            self.look()
        served = self._live.get(number)
        return self._successor(self._known[number]) if served is None else served

    def reject(self, number: int, reason: str) -> None:
        """Count bad input, with its model where that is still here."""
        served = self._live.get(number)
        (self.models if served is None else served.runner).ledger.reject(reason)

    def _described(self, number: int, one: Served) -> Known:
        limits = one.runner.limits
        return Known(
            number,
            one.name,
            one.version,
            self.models.find(one.name, None) is one,
            limits.max_batch_size,
            limits.classes,
            one.signature,
        )

    def _successor(self, known: Known) -> Served:
        try:
            now = self.models.find(known.name, None if known.default else known.version)
        except UnknownModelError as error:
            self.models.ledger.reject(error.reason)
            raise
        takes = (now.runner.signature, now.runner.limits.max_batch_size)
        if takes != (known.signature, known.max_batch_size):
            now.runner.refuse_unready()
        return now
