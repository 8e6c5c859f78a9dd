"""A client that opens many connections, sends each the same bytes at a pace, and holds them open.

`python -m reliability.attacks.hostile_client PORT ...`, a process of its own, so that what it costs
is not measured as the victim's. It writes a line of JSON each second: connections that are open,
refused or ended by the server, and the status lines that were read.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import selectors
import socket
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

READ_BYTES = 1 << 16
CONNECTS_PER_ROUND = 200
"""So that connections that are open already go on sending meanwhile."""
AGAIN_EVERY_S = 0.1
"""Pause before connections that the server ended are replaced."""


@dataclass(slots=True, eq=False)
class _Connection:
    """One connection, and what it has still to send."""

    socket: socket.socket
    left: memoryview
    next_s: float = 0.0
    read: bytes = b""


@dataclass(slots=True, eq=False)
class HostileClient:
    """The connections to one port of the loopback address."""

    port: int
    count: int
    payload: bytes
    """Bytes that each connection sends."""
    segment: int
    """Bytes per write."""
    gap_s: float
    """Pause between two writes of a connection."""
    again: bool
    """Whether a connection that the server ended is replaced."""
    repeats: bool
    """Whether a connection sends the same again when it has sent all."""
    reads: bool
    """Whether answers are read."""
    open: set[_Connection] = field(default_factory=set)
    outcomes: Counter[str] = field(default_factory=Counter)
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    _begun: int = 0
    _again_s: float = 0.0

    def run(self, seconds: float) -> None:
        """Attack for so long."""
        ends_s = time.monotonic() + seconds
        said_s = 0.0
        while (now_s := time.monotonic()) < ends_s:
            self._connect()
            for connection in [one for one in self.open if one.left and one.next_s <= now_s]:
                self._send(connection, now_s)
            for key, _ in self._selector.select(timeout=0.005):
                self._read(key.data)
            if now_s - said_s >= 1.0:
                said_s = now_s
                self.say()
        self.say()

    def say(self) -> None:
        """Write what happened so far."""
        sent = sum(not one.left for one in self.open)
        print(json.dumps({"open": len(self.open), "sent": sent, **self.outcomes}), flush=True)

    def _connect(self) -> None:
        if self._begun >= self.count:
            if not self.again or time.monotonic() < self._again_s:
                return
            self._again_s = time.monotonic() + AGAIN_EVERY_S
        for _ in range(min(CONNECTS_PER_ROUND, self.count - len(self.open))):
            self._begun += 1
            try:
                made = socket.create_connection(("127.0.0.1", self.port), timeout=1.0)
            except OSError as error:
                self.outcomes[f"connect {type(error).__name__}"] += 1
                return
            made.setblocking(False)
            connection = _Connection(made, memoryview(self.payload))
            self.open.add(connection)
            if self.reads:
                self._selector.register(made, selectors.EVENT_READ, connection)

    def _send(self, connection: _Connection, now_s: float) -> None:
        try:
            sent = connection.socket.send(connection.left[: self.segment])
        except BlockingIOError:
            connection.next_s = now_s + 0.01
        except OSError:
            self._end(connection)
        else:
            connection.left = connection.left[sent:]
            if self.repeats and not connection.left:
                connection.left = memoryview(self.payload)
            connection.next_s = now_s + self.gap_s

    def _read(self, connection: _Connection) -> None:
        try:
            got = connection.socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            got = b""
        if not connection.read and got:
            status = got.split(b"\r\n", 1)[0].decode("latin-1")
            self.outcomes[status[:40]] += 1
        connection.read = connection.read or got[:1]
        if not got:
            self._end(connection)

    def _end(self, connection: _Connection) -> None:
        self.outcomes["ended by the server"] += 1
        self.open.discard(connection)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(connection.socket)
        connection.socket.close()


def main() -> int:
    """Attack as the command line says; `HEAD` has escapes, as in `POST / HTTP/1.1\\r\\n\\r\\n`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--head", default="")
    parser.add_argument("--body", type=int, default=0, help="bytes behind the head")
    parser.add_argument("--segment", type=int, default=1 << 16)
    parser.add_argument("--gap", type=float, default=0.0)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--repeat", action="store_true")
    parser.add_argument("--unread", action="store_true")
    parser.add_argument("--seconds", type=float, default=10.0)
    asked = parser.parse_args()
    head = asked.head.encode().decode("unicode_escape").encode("latin-1")
    client = HostileClient(
        port=asked.port,
        count=asked.count,
        payload=head + b"x" * asked.body,
        segment=asked.segment,
        gap_s=asked.gap,
        again=asked.again,
        repeats=asked.repeat,
        reads=not asked.unread,
    )
    client.run(asked.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
