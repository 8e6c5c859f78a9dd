"""One attempt to have a replica answer a held HTTP request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from headroom.activator.byte_pipe import bound_buffers, copy, copy_answer, read_start
from headroom.activator.http_request import PIECE, Incoming, status_of
from headroom.gateway.listener.retries import REFUSED
from headroom.gateway.values import Endpoint

CONNECT_WITHIN_S = 0.5


@dataclass(slots=True, eq=False)
class HeldConnection:
    """One connection whose request is held."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    incoming: Incoming


class Attempt(Enum):
    """The outcome of one attempt."""

    ANSWERED = auto()
    NOT_BEGUN = auto()
    """The replica refused the request or was unreachable."""
    BROKEN_OFF = auto()
    """The replica may have started the request."""


async def forward(
    connection: HeldConnection, host: Endpoint, held_s: float, on_answer: Callable[[], None]
) -> Attempt:
    """Pipe the client to a replica; raise OSError if the client disconnects.

    `on_answer` is called when the replica begins to answer.
    """
    try:
        async with asyncio.timeout(CONNECT_WITHIN_S):
            reader, writer = await asyncio.open_connection(host.address, host.port, limit=PIECE)
    except (OSError, TimeoutError):
        return Attempt.NOT_BEGUN
    bound_buffers(writer)
    upwards = asyncio.create_task(_send(connection, held_s, writer))
    try:
        data = await read_start(reader)
        if connection.reader.at_eof():
            raise ConnectionResetError("the client disconnected")
        status = status_of(data)
        if status in REFUSED:
            return Attempt.NOT_BEGUN
        if status is None:
            return Attempt.BROKEN_OFF
        on_answer()
        await copy_answer(data, reader, connection.writer)
        return Attempt.ANSWERED
    finally:
        upwards.cancel()
        writer.close()
        await asyncio.gather(upwards, return_exceptions=True)


async def _send(connection: HeldConnection, held_s: float, writer: asyncio.StreamWriter) -> None:
    """Send the held request and the rest of its body; end it when the client has left."""
    sending = asyncio.create_task(_send_held(connection.incoming, held_s, writer))
    later = asyncio.create_task(connection.reader.read(PIECE))
    try:
        await asyncio.wait({sending, later}, return_when=asyncio.FIRST_COMPLETED)
        if later.done() and not later.result():
            writer.transport.abort()  # a replica that does not read would keep the request
            return
        await sending
        if data := await later:
            writer.write(data)
            await writer.drain()
            await copy(connection.reader, writer)
        else:
            writer.close()
    finally:
        sending.cancel()
        later.cancel()
        await asyncio.gather(sending, later, return_exceptions=True)


async def _send_held(incoming: Incoming, held_s: float, writer: asyncio.StreamWriter) -> None:
    """Send a request in pieces, without a second copy of its body."""
    writer.write(incoming.forwarded_head(held_s))
    for piece in incoming.pieces:
        writer.write(bytes(piece))
        await writer.drain()
