"""In the device process: one front's requests, put in line, and their ends, sent back."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from headroom_server.connection import Connection
from headroom_server.engine import Work
from headroom_server.errors import DisconnectedError, FailedError, RequestError
from headroom_server.fronts import wire
from headroom_server.fronts.channel import Channel
from headroom_server.fronts.frames import Kind
from headroom_server.fronts.register import Register
from headroom_server.tensors import Signature

if TYPE_CHECKING:
    from headroom_server.device.execution import Outputs

log = logging.getLogger("headroom_server")

Visited = Callable[["Counter", socket.socket, float, bytes], None]
"""A connection has come for one request: when it retires, and what was read of it."""


class Counter:
    """The device process's end of one channel."""

    channel: Channel

    def __init__(self, register: Register, visited: Visited) -> None:
        self._register = register
        self._visited = visited
        self._owed: dict[int, Connection] = {}
        self._state: tuple[bool, bool] | None = None

    @property
    def open(self) -> bool:
        """Whether the front is there."""
        return self.channel.open

    def tell(self) -> None:
        """How the server is, where that is news."""
        if self._news():
            self.channel.send(self._said())

    def received(self, kind: int, payload: bytes) -> None:
        """A frame of the front."""
        if kind == Kind.SUBMIT:
            self._submit(payload)
        elif kind == Kind.CANCEL:
            connection = self._owed.get(wire.read_key(payload))
            if connection is not None:
                connection.lost()
        elif kind == Kind.INVALID:
            self._register.reject(*wire.read_invalid(payload))

    def visited(self, visitor: socket.socket, retire_at_s: float, data: bytes) -> None:
        """A connection came, for one request."""
        self._visited(self, visitor, retire_at_s, data)

    def flushing(self) -> None:
        """Answers go: how the server is goes with them."""
        self.tell()

    def lost(self) -> None:
        """The front is gone, and with it the clients of all that it had asked."""
        for connection in list(self._owed.values()):
            connection.lost()
        self._owed.clear()

    def _submit(self, payload: bytes) -> None:
        key, number, arrived_s, terms, items, length, blob = wire.read_submit(payload)
        parts = self.channel.get(blob)
        connection = self._owed[key] = Connection()
        try:
            served = self._register.find(number)
            signature = served.signature
            served.runner.submit(
                Work(items, wire.by_name(signature.inputs, parts), length),
                arrived_s=arrived_s,
                terms=terms,
                connection=connection,
                told=partial(self._told, key, signature),
            )
        except RequestError as error:
            self._fail(key, error)
        except Exception:  # the last resort, which logs it
            log.exception("a request of a front was not put in line")
            self._fail(key, FailedError("internal error; the server's log says more"))

    def _told(self, key: int, signature: Signature, result: Outputs | RequestError) -> None:
        if isinstance(result, RequestError):
            self._fail(key, result)
            return
        self._owed.pop(key, None)
        if self.channel.open:
            blob = self.channel.put(wire.in_order(signature.outputs, result))
            self.channel.send(wire.outputs(key, blob))

    def _fail(self, key: int, error: RequestError) -> None:
        self._owed.pop(key, None)
        if self.channel.open and not isinstance(error, DisconnectedError):
            self.channel.send(wire.error(key, error))

    def _news(self) -> bool:
        models = self._register.models
        before, self._state = self._state, (models.draining, models.crowded)
        return before != self._state

    def _said(self) -> bytes:
        assert self._state is not None
        draining, crowded = self._state
        return wire.state(draining=draining, crowded=crowded)
