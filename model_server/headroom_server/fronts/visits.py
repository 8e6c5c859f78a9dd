"""In the device process: connections that come for one request, and go back to their front."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headroom_server.fronts.counter import Counter

if TYPE_CHECKING:
    import uvicorn

GiveBack = Callable[[asyncio.Transport, float], bool]
"""Whether the front takes it."""


class Visits:
    """Serves them as the server's own connections, with one more step at the end."""

    def __init__(self, server: uvicorn.Server) -> None:
        self._server = server
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(
        self, counter: Counter, visitor: socket.socket, retire_at_s: float, data: bytes
    ) -> None:
        """Serve what comes from this connection."""
        task = asyncio.get_running_loop().create_task(
            self._serve(counter, visitor, retire_at_s, data)
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(
        self, counter: Counter, visitor: socket.socket, retire_at_s: float, data: bytes
    ) -> None:
        config = self._server.config

        def protocol() -> asyncio.Protocol:
            visiting: asyncio.Protocol = _visiting(config.http_protocol_class)(
                counter,
                retire_at_s,
                data,
                config=config,
                server_state=self._server.server_state,
                app_state=self._server.lifespan.state,
            )
            return visiting

        try:
            await asyncio.get_running_loop().connect_accepted_socket(protocol, visitor)
        except OSError:
            visitor.close()


_CLASSES: dict[type[Any], type[Any]] = {}


def _visiting(base: type[Any]) -> type[Any]:
    """The server's protocol, for a connection of which something was read already."""
    if base not in _CLASSES:
        _CLASSES[base] = _derived(base)
    return _CLASSES[base]


def _derived(base: Any) -> type[Any]:
    class Visiting(base):  # type: ignore[misc]
        def __init__(
            self, counter: Counter, retire_at_s: float, data: bytes, **server: object
        ) -> None:
            super().__init__(**server)
            self._counter = counter
            self._retire_at_s = retire_at_s
            self._brought = data

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._connection.retire_at_s = self._retire_at_s
            self.data_received(self._brought)
            self._brought = b""

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self.loop.call_soon(self._leave)

        def _leave(self) -> None:
            cycle = self.cycle
            if self.transport.is_closing() or not self._counter.open:
                return
            if self._receiving or self.pipeline or self._rejection is not None:
                return  # the next one is here already
            if cycle is None or not cycle.response_complete:
                return
            if self.transport.get_write_buffer_size():
                self.loop.call_later(0.005, self._leave)
                return
            self._counter.channel.hand_over(self.transport, self._retire_at_s, b"")

    return Visiting
