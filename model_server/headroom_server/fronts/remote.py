"""In a front: the models of the device process, to be asked as if they were here."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import NoReturn, cast

from headroom_server.connection import Connection
from headroom_server.engine import Work
from headroom_server.errors import RefusedError, UnknownModelError
from headroom_server.fronts import wire
from headroom_server.fronts.catalogue import Known
from headroom_server.fronts.channel import Channel
from headroom_server.fronts.wire import Submit
from headroom_server.runtime.catalogue import Served
from headroom_server.runtime.limits import Limits
from headroom_server.runtime.pending import Told
from headroom_server.runtime.runner import Runner
from headroom_server.scheduling.terms import Terms
from headroom_server.tensors import Signature


class Owed:
    """What the device process has not answered yet."""

    def __init__(self, channel: Callable[[], Channel]) -> None:
        self._channel = channel
        self._keys = itertools.count()
        self._told: dict[int, tuple[Told, Signature, Connection]] = {}

    def submit(
        self,
        known: Known,
        work: Work,
        arrived_s: float,
        terms: Terms,
        connection: Connection,
        told: Told,
    ) -> None:
        """Send a request; `told` is called with its end, unless its client leaves before."""
        key, channel, signature = next(self._keys), self._channel(), known.signature
        blob = channel.put(wire.in_order(signature.inputs, work.inputs))
        said = Submit(key, known.number, arrived_s, terms, work.items, work.length, blob)
        channel.send(wire.submit(said))
        self._told[key] = (told, signature, connection)
        connection.on_lost = partial(self._leave, key)

    def outputs(self, payload: bytes) -> None:
        """A request was answered."""
        key, blob = wire.read_outputs(payload)
        parts = self._channel().get(blob)
        owed = self._told.pop(key, None)
        if owed is not None:
            told, signature, connection = owed
            connection.on_lost = None
            told(wire.by_name(signature.outputs, parts))

    def error(self, payload: bytes) -> None:
        """A request ended otherwise."""
        key, error = wire.read_error(payload)
        owed = self._told.pop(key, None)
        if owed is not None:
            told, _, connection = owed
            connection.on_lost = None
            told(error)

    def _leave(self, key: int) -> None:
        if self._told.pop(key, None) is not None:
            self._channel().send(wire.cancel(key))


class RemoteRunner:
    """Of a runner in the device process, what the way of a usual request needs."""

    clock = staticmethod(time.monotonic)
    """The same in all processes of a machine."""
    keeps_answers = False

    def __init__(self, known: Known, owed: Owed, channel: Callable[[], Channel]) -> None:
        self.model = known.name
        self.signature = known.signature
        self.limits = Limits(
            max_batch_size=known.max_batch_size,
            max_waiting=0,  # not decided here
            stall_timeout_s=0.0,
            classes=known.classes,
        )
        self.ledger = self
        self._known = known
        self._owed = owed
        self._channel = channel

    def reject(self, reason: str) -> None:
        """Have bad input counted."""
        self._channel().send(wire.invalid(self._known.number, reason))

    def submit(
        self, work: Work, *, arrived_s: float, terms: Terms, connection: Connection, told: Told
    ) -> None:
        """As `Door.submit`; a refusal is told, too, since it is decided elsewhere."""
        self._owed.submit(self._known, work, arrived_s, terms, connection, told)

    def refuse_unready(self) -> NoReturn:
        """Never needed: what is not loaded is not known here."""
        raise RefusedError("this replica is not ready", retry_after_s=1)


class RemoteCatalogue:
    """What the device process said last of the models that take requests."""

    def __init__(self, owed: Owed, channel: Callable[[], Channel]) -> None:
        self._owed = owed
        self._channel = channel
        self._served: dict[tuple[str, str | None], Served] = {}
        self._by_number: dict[int, Served] = {}

    def follow(self, models: Iterable[Known]) -> None:
        """From now on these; what stays keeps its compiled forms."""
        before, self._served, self._by_number = self._by_number, {}, {}
        for one in models:
            served = before.get(one.number)
            if served is None:
                runner = RemoteRunner(one, self._owed, self._channel)
                served = Served(cast("Runner", runner), one.version)
            self._by_number[one.number] = served
            self._served[one.name, one.version] = served
            if one.default:
                self._served[one.name, None] = served

    def find(self, name: str, version: str | None) -> Served:
        """A model that takes requests.

        Raises:
            UnknownModelError: where it is not known here; the device process may know better.
        """
        served = self._served.get((name, version))
        if served is None:
            raise UnknownModelError("not known to this front")
        return served

    def all(self) -> Iterable[Served]:
        """All that are known."""
        return self._by_number.values()
