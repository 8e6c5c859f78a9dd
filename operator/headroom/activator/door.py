"""Where gateways bring requests: a port per service, one request per connection.

A connection is read to the end of its request, waits for its turn, and is then tied to a replica
byte by byte, so that whatever passes a replica passes here: streams and upgrades too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from headroom.activator.holding import Holding, Refusal, Ticket, Why
from headroom.activator.metrics import Metrics
from headroom.activator.request import Incoming, MalformedError, answer, status_of
from headroom.activator.turns import Outcome, Turns
from headroom.gateway.activation import Served
from headroom.gateway.routes import REFUSED
from headroom.gateway.values import Endpoint

if TYPE_CHECKING:
    from headroom.activator.calls import Calls

_log = logging.getLogger(__name__)

PIECE = 1 << 16
READ_WITHIN_S = 60.0
"""Of a whole request: gateways have collected its body before."""
CONNECT_WITHIN_S = 0.5
HTTP2 = b"PRI * HTTP/2.0"


@dataclass(slots=True, eq=False)
class _Visit:
    """One connection whose request is held."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    incoming: Incoming


class Door:
    """Takes requests while a service has no warm replica, and passes them on once it has."""

    def __init__(
        self, holding: Holding, metrics: Metrics, knocked: Callable[[str], None], host: str = ""
    ) -> None:
        self._holding = holding
        self._metrics = metrics
        self._knocked = knocked
        self._host = host or None
        self._servers: dict[int, tuple[str, asyncio.Server]] = {}
        self._served: dict[str, Served] = {}
        self._handling: set[asyncio.Task[Any]] = set()
        self._tied: set[asyncio.Task[Any]] = set()
        """Connections of HTTP/2, which outlast the calls on them."""
        self.turns = Turns(holding)
        self._calls: Calls | None = None

    @property
    def listening(self) -> frozenset[int]:
        """Ports at which requests are taken."""
        return frozenset(self._servers)

    async def shut(self) -> None:
        """Leave whoever is still inside without an answer."""
        self.close()
        if self._calls is not None:
            await self._calls.shut()
        inside = self._handling | self._tied
        for task in inside:
            task.cancel()
        await asyncio.gather(*inside, return_exceptions=True)

    async def emptied(self, within_s: float) -> None:
        """Wait until nobody is inside, or the time is over."""
        if self._handling:
            await asyncio.wait(self._handling, timeout=within_s)

    async def serve(self, services: Iterable[Served], *, opens: bool = True) -> None:
        """Take in what is served: give out what has a replica now, open and close ports."""
        known = {one.port: one for one in services}
        self._served = {one.key: one for one in known.values()}
        self._holding.serve(known.values())
        self.turns.take()
        if self._calls is not None:
            await self._calls.serve(self._served)
        for port, (key, server) in list(self._servers.items()):
            if port not in known or known[port].key != key:
                server.close()
                del self._servers[port]
        for port, one in known.items():
            if port in self._servers or not opens:
                continue
            try:
                server = await asyncio.start_server(
                    self._visitor(one.key), self._host, port, backlog=4096, limit=PIECE
                )
            except OSError as error:
                _log.warning("%s: port %d cannot be opened: %s", one.key, port, error)
                continue
            self._servers[port] = (one.key, server)

    def close(self) -> None:
        """Take no connection more; who is inside stays."""
        for _, server in self._servers.values():
            server.close()
        self._servers.clear()

    def leave(self) -> None:
        """Refuse whoever still waits."""
        self._holding.leave()
        self.turns.take()

    def _visitor(self, key: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._handle(key, reader, writer))
            self._handling.add(task)
            task.add_done_callback(self._handling.discard)

        return visit

    async def _handle(
        self, key: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        ticket: Ticket | None = None
        loop = asyncio.get_running_loop()
        try:
            incoming = await _head(reader)
            if isinstance(incoming, bytes):
                await self._tie(key, incoming, reader, writer)
                return
            admitted = self._holding.admit(key, loop.time(), incoming.timeout_s)
            self._knocked(key)
            if isinstance(admitted, Ticket):
                ticket = admitted
                refusal = await self._collect(reader, incoming, ticket)
                if refusal is None:
                    visit = _Visit(reader, writer, incoming)
                    refusal = await self._stay(ticket, visit)
            else:
                refusal = admitted
            if refusal is not None:
                await self._refuse(key, writer, refusal)
        except MalformedError as error:
            refusal = Refusal(status=400, why=Why.MALFORMED, words=str(error))
            await self._refuse(key, writer, refusal)
        except (OSError, TimeoutError):
            self._metrics.ended(key, "Left")
        finally:
            if ticket is not None:
                self.turns.end(ticket)
            writer.close()

    async def _tie(
        self, key: str, begun: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Tie a connection of HTTP/2 to what holds calls, until one of them ends it."""
        task = asyncio.current_task()
        assert task is not None
        self._handling.discard(task)
        self._tied.add(task)
        task.add_done_callback(self._tied.discard)
        if self._calls is None:
            # 20 MB, which an activator without calls need not hold.
            from headroom.activator.calls import Calls  # noqa: PLC0415

            self._calls = Calls(
                self._holding, self.turns, self._metrics, self._knocked, self._handling
            )
        if key not in self._served:
            return
        path = await self._calls.path_for(self._served[key])
        answers, calls = await asyncio.open_unix_connection(path)
        calls.write(begun)
        upwards = asyncio.create_task(_pump(reader, calls))
        try:
            await _pump(answers, writer)
        finally:
            upwards.cancel()
            calls.transport.abort()  # before anything at which this may be cancelled once more
            await asyncio.gather(upwards, return_exceptions=True)
            with suppress(OSError):
                await calls.wait_closed()

    async def _collect(
        self, reader: asyncio.StreamReader, incoming: Incoming, ticket: Ticket
    ) -> Refusal | None:
        """Read the request to its end; give the refusal where it is too much."""
        loop = asyncio.get_running_loop()
        size = len(incoming.head) + len(incoming.rest)
        async with asyncio.timeout(READ_WITHIN_S):
            while True:
                refusal = self._holding.grow(ticket, size, loop.time())
                if refusal is not None or incoming.complete:
                    return refusal
                data = await reader.read(PIECE)
                if not data:
                    raise ConnectionResetError("the request was broken off")
                incoming.feed(data)
                size = len(data)

    async def _stay(self, ticket: Ticket, visit: _Visit) -> Refusal | None:
        """Wait for a replica and pass the request on, again where it did not begin."""
        loop = asyncio.get_running_loop()
        self._holding.complete(ticket)
        begun = False
        while True:
            outcome = await self._own_turn(visit, self.turns.wait(ticket))
            if isinstance(outcome, Refusal):
                return outcome
            held_s = loop.time() - ticket.arrived_s
            passed = await self._pass_on(ticket, visit, outcome, held_s)
            if passed is _Passed.ANSWERED:
                return None
            if passed is _Passed.BROKEN_OFF and (begun or not visit.incoming.may_repeat):
                words = "the replica ended the connection before it answered"
                return Refusal(status=503, why=Why.FAILED, words=words, retry_after_s=1)
            begun = begun or passed is _Passed.BROKEN_OFF
            self._holding.put_back(ticket, loop.time())

    async def _own_turn(self, visit: _Visit, turn: asyncio.Future[Outcome]) -> Outcome:
        """Wait for the turn; raise ConnectionResetError where the client leaves before."""
        more = asyncio.create_task(visit.reader.read(PIECE))
        try:
            while True:
                either: set[asyncio.Future[Any]] = {more, turn}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if not more.done():
                    return turn.result()
                if not more.result():
                    raise ConnectionResetError("the client has left")
                visit.incoming.rest += more.result()
                more = asyncio.create_task(visit.reader.read(PIECE))
        finally:
            more.cancel()
            await asyncio.gather(more, return_exceptions=True)

    async def _pass_on(
        self, ticket: Ticket, visit: _Visit, host: Endpoint, held_s: float
    ) -> _Passed:
        """Tie the client to a replica; raise OSError where the client leaves."""
        try:
            async with asyncio.timeout(CONNECT_WITHIN_S):
                reader, writer = await asyncio.open_connection(host.address, host.port)
        except (OSError, TimeoutError):
            return _Passed.NOT_BEGUN
        upwards = asyncio.create_task(_pump(visit.reader, writer))
        try:
            writer.write(visit.incoming.forwarded(held_s))
            data = await _first(reader)
            if visit.reader.at_eof():
                raise ConnectionResetError("the client has left")
            status = status_of(data)
            if status in REFUSED:
                return _Passed.NOT_BEGUN
            if status is None:
                return _Passed.BROKEN_OFF
            self._holding.answered(ticket)
            self._metrics.passed_on(ticket.key, held_s)
            while data:
                visit.writer.write(data)
                await visit.writer.drain()
                data = await reader.read(PIECE)
            return _Passed.ANSWERED
        finally:
            upwards.cancel()
            writer.close()
            await asyncio.gather(upwards, return_exceptions=True)

    async def _refuse(self, key: str, writer: asyncio.StreamWriter, refusal: Refusal) -> None:
        self._metrics.ended(key, refusal.why)
        with suppress(OSError):
            writer.write(answer(refusal))
            await writer.drain()


class _Passed(Enum):
    """What became of one try."""

    ANSWERED = auto()
    NOT_BEGUN = auto()
    """Refused, or not reached."""
    BROKEN_OFF = auto()
    """The replica may have begun with it."""


async def _head(reader: asyncio.StreamReader) -> Incoming | bytes:
    """Read a request to the end of its headers at least; of HTTP/2 give how it begins."""
    incoming = Incoming()
    async with asyncio.timeout(READ_WITHIN_S):
        while not incoming.head:
            data = await reader.read(PIECE)
            if not data:
                raise ConnectionResetError("nothing was asked")
            if data.startswith(HTTP2):
                return data
            incoming.feed(data)
    return incoming


async def _first(reader: asyncio.StreamReader) -> bytes:
    """Read the beginning of an answer; nothing where the replica breaks off."""
    try:
        return await reader.read(PIECE)
    except OSError:
        return b""


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what else the client says, until it leaves; then the replica is left too."""
    while data := await reader.read(PIECE):
        writer.write(data)
        await writer.drain()
    writer.close()
