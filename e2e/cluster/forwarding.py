"""Forwards connections from the host's loopback into a node's network.

A socket belongs to the network that it was made in. The listening socket is made on the host and
handed to this program, which runs inside the node's network: it accepts outside, connects inside.
"""

from __future__ import annotations

import asyncio
import socket
import sys

CHUNK_BYTES = 1 << 16


async def serve(listener: socket.socket, host: str, port: int) -> None:
    """Forward each connection that `listener` accepts to `host:port`, until cancelled."""

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_connection(host, port)
        except OSError:
            # What the client of an address without a listener sees: the connection is cut.
            writer.transport.abort()
            return
        try:
            await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))
        finally:
            inner_writer.close()
            writer.close()

    server = await asyncio.start_server(forward, sock=listener)
    async with server:
        await server.serve_forever()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction to its end, then pass the end on and leave the other direction open."""
    try:
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        # Either side is gone: both directions end.
        writer.transport.abort()


def main() -> None:
    """`python -m cluster.forwarding LISTENER_FD HOST PORT`."""
    descriptor, host, port = sys.argv[1:]
    listener = socket.socket(fileno=int(descriptor))
    asyncio.run(serve(listener, host, int(port)))


if __name__ == "__main__":
    main()
