"""Pipes bytes between a client's connection and a replica's, with bounded buffers."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress

from headroom.activator.http_request import PIECE

SOCKET_BYTES = 1 << 15
"""Size of the kernel's buffer of arriving bytes, which may be read at once."""
STATUS_BYTES = len(b"HTTP/1.1 200 ")
"""Bytes of an answer from which its status is known."""


def bound_buffers(writer: asyncio.StreamWriter) -> None:
    """Bound the waiting bytes in both directions of a connection."""
    writer.transport.set_write_buffer_limits(high=PIECE)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BYTES)


def _all(data: bytes) -> bytes:
    return data


async def copy(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    passed: Callable[[bytes], bytes | None] = _all,
) -> None:
    """Copy bytes as they are `passed` until the reader ends or that is None; close the writer."""
    while (data := await reader.read(PIECE)) and (more := passed(data)) is not None:
        writer.write(more)
        await writer.drain()
    writer.close()


async def read_start(reader: asyncio.StreamReader) -> bytes:
    """Read the start of an answer; less than its status if the replica closes the connection."""
    data = b""
    with suppress(OSError):
        while len(data) < STATUS_BYTES and (more := await reader.read(PIECE)):
            data += more
    return data


async def copy_answer(
    data: bytes, reader: asyncio.StreamReader, client: asyncio.StreamWriter
) -> None:
    """Copy an answer that begins with `data`; reset the client where the answer breaks off."""
    while data:
        client.write(data)
        await client.drain()
        try:
            data = await reader.read(PIECE)
        except OSError:
            _reset(client)
            raise


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection with an error, because a plain close would look like the answer's end."""
    sent = writer.get_extra_info("socket")
    sent.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
