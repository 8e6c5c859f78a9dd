"""The local gRPC servers, one for each service, at abstract Unix sockets of this process.

A connection's bytes are piped to the server of its service, so the gRPC library handles pings, flow
control and trailers.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import grpc
import grpc.aio

from headroom.activator.replica_channels import WINDOWS
from headroom.gateway.activator_messages import Served

_OPTIONS = (
    # Gateways ping every ten seconds, even without calls.
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.keepalive_permit_without_calls", 1),
)
MAX_MESSAGE_BYTES = 16 << 20
"""Largest size of one message, whatever routing.maxBodyBytes is: its size is unknown before it has
arrived."""

Handle = Callable[[str, str, AsyncIterator[bytes], Any], Awaitable[None]]
"""Handles a call: the key of its service, its method, its messages and its context."""


@dataclass(slots=True)
class _ServiceServer:
    """The local gRPC server of one service."""

    served: Served
    server: grpc.aio.Server
    path: str


class GrpcServers:
    """Starts the server of a service at its first connection."""

    def __init__(self, handle: Handle) -> None:
        """`handle` gets every call."""
        self._handle = handle
        self._by_key: dict[str, _ServiceServer] = {}
        self._numbers = count()
        self._opening = asyncio.Lock()

    def served(self, key: str) -> Served:
        """Return the service of a running server."""
        return self._by_key[key].served

    async def serve(self, services: Mapping[str, Served]) -> None:
        """Set the services by key; stop the servers of removed ones."""
        for key in [key for key in self._by_key if key not in services]:
            await self._by_key.pop(key).server.stop(grace=None)
        for key, place in self._by_key.items():
            place.served = services[key]

    async def path_for(self, served: Served) -> str:
        """Return the socket path of a service's server, which is started if it is not running."""
        async with self._opening:
            place = self._by_key.get(served.key)
            if place is None:
                place = self._by_key[served.key] = self._created(served)
                await place.server.start()
            return place.path

    async def connected(self, served: Served) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the server of a service.

        uvloop connects sockets to abstract names, and does not take such a name as a path.
        """
        path, inside = await self.path_for(served), socket.socket(socket.AF_UNIX)
        try:
            inside.setblocking(False)
            await asyncio.get_running_loop().sock_connect(inside, path)
            return await asyncio.open_unix_connection(sock=inside)
        except BaseException:
            inside.close()
            raise

    def _created(self, served: Served) -> _ServiceServer:
        # Not by the port: another service may have it once this one was created again.
        name = f"headroom-activator-{os.getpid()}-{next(self._numbers)}"
        most = [("grpc.max_receive_message_length", largest_message(served))]
        server = grpc.aio.server(options=[*_OPTIONS, *WINDOWS, *most])
        server.add_generic_rpc_handlers((_AnyMethod(self._handle, served.key),))
        server.add_insecure_port(f"unix-abstract:{name}")
        return _ServiceServer(served, server, f"\0{name}")

    async def abort(self) -> None:
        """Stop all servers."""
        for place in self._by_key.values():
            await place.server.stop(grace=None)
        self._by_key.clear()


class _AnyMethod(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    """Handles every method, with messages as bytes."""

    def __init__(self, handle: Handle, key: str) -> None:
        self._handle = handle
        self._key = key

    def service(self, handler_call_details: Any) -> Any:
        """Return the handler for a call of this method."""
        method = handler_call_details.method

        async def handle(said: AsyncIterator[bytes], context: Any) -> None:
            await self._handle(self._key, method, said, context)

        return grpc.stream_stream_rpc_method_handler(handle)


def largest_message(served: Served) -> int:
    """Return the largest size of a message of a service, in bytes."""
    return min(served.max_body_bytes, MAX_MESSAGE_BYTES)
