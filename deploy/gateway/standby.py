"""Accepts connections while Envoy is down, and forwards them to another gateway.

For 30 to 100 ms after Envoy was killed, a Service still routes to its pod, and the kernel would
refuse connections. This process also listens on Envoy's ports, on `[::]` for both address families,
where Envoy has `0.0.0.0`: the kernel prefers the closer match, so Envoy gets every IPv4 connection
while it listens. (`SO_REUSEPORT` requires that one user runs both.) Ports and gateways are read
from Envoy's admin interface while it is up. Bytes are forwarded unchanged.
"""

import argparse
import asyncio
import contextlib
import json
import random
import signal
import socket
from functools import partial
from http.client import HTTPException

from envoy_admin import ask

GATEWAYS = "headroom.gateways"
"""Runtime key of Envoy with the addresses of the gateways, which the operator writes."""
FIRST_PORT, PORTS = 20_000, 10_000
UPDATE_EVERY_S = 1.0
CONNECT_TIMEOUT_S = 0.3
MAX_CONNECTIONS = 1024
"""Maximum connections forwarded at a time: 2 x 40 KiB each, 80 MiB of the container's 128."""
CHUNK_BYTES = 1 << 13
"""Per connection and direction, read and not yet written."""
KERNEL_BYTES = 1 << 14
"""Receive buffer of a socket, which the kernel doubles: the most that one read returns."""
DRAIN_S = 30.0
"""Time after SIGTERM for forwarded connections to end."""


class Standby:
    """The last known listeners of Envoy, and the connections that are forwarded."""

    def __init__(self, admin: str, address: str) -> None:
        """Take Envoy's admin address and the address of this pod."""
        self._admin = admin
        self._address = address
        self._others: list[str] = []
        self._servers: dict[int, asyncio.Server] = {}
        self._forwarded: set[asyncio.Task[None]] = set()

    async def run(self, until: asyncio.Event) -> None:
        """Listen until `until` is set, then wait for the forwarded connections."""
        following = asyncio.create_task(self._follow())
        await until.wait()
        following.cancel()
        for server in self._servers.values():
            server.close()
        if self._forwarded:
            await asyncio.wait(self._forwarded, timeout=DRAIN_S)

    async def _follow(self) -> None:
        """Listen on the same ports as Envoy; keep the last known ones while it is down."""
        while True:
            with contextlib.suppress(OSError, HTTPException, ValueError, KeyError):
                listeners, runtime = await asyncio.to_thread(self._ask)
                self._others = [one for one in gateways_of(runtime) if one != self._address]
                await self._listen(ports_of(listeners))
            await asyncio.sleep(UPDATE_EVERY_S)

    def _ask(self) -> tuple[bytes, bytes]:
        return ask(self._admin, "/listeners?format=json"), ask(self._admin, "/runtime?format=json")

    async def _listen(self, ports: set[int]) -> None:
        for port in self._servers.keys() - ports:
            self._servers.pop(port).close()
        for port in ports - self._servers.keys():
            with contextlib.suppress(OSError):  # retried with the next update
                self._servers[port] = await asyncio.start_server(
                    partial(self._accept, port),
                    sock=_behind(port),
                    backlog=MAX_CONNECTIONS,
                    limit=CHUNK_BYTES,
                )

    def _accept(
        self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.create_task(self._forward(port, reader, writer))
        self._forwarded.add(task)
        task.add_done_callback(self._forwarded.discard)

    async def _forward(
        self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Forward a connection; reject connections from other gateways, which would loop."""
        came_from = writer.get_extra_info("peername")[0].removeprefix("::ffff:")
        refused = came_from in self._others or len(self._forwarded) > MAX_CONNECTIONS
        found = None if refused else await self._reach(port)
        if found is None:
            writer.transport.abort()
            return
        inner, outer = found
        for each in (outer, writer):
            each.transport.set_write_buffer_limits(CHUNK_BYTES)
        try:
            await asyncio.gather(_pass(reader, outer), _pass(inner, writer))
        finally:
            outer.close()
            writer.close()

    async def _reach(self, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        for address in random.sample(self._others, len(self._others)):
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    found = await asyncio.open_connection(address, port, limit=CHUNK_BYTES)
                    _shrink(found[1].get_extra_info("socket"))
                    return found
        return None


def ports_of(listeners: bytes) -> set[int]:
    """Read the services' ports from Envoy's list of listeners; raise ValueError or KeyError."""
    status = json.loads(listeners).get("listener_statuses", [])
    sockets = [one["local_address"].get("socket_address", {}) for one in status]
    ports = {int(one.get("port_value", 0)) for one in sockets}
    return {port for port in ports if FIRST_PORT <= port < FIRST_PORT + PORTS}


def gateways_of(runtime: bytes) -> list[str]:
    """Read the gateways' addresses from Envoy's runtime; raise ValueError or KeyError."""
    known = json.loads(runtime)["entries"].get(GATEWAYS, {})
    return str(known.get("final_value", "")).split()


def _behind(port: int) -> socket.socket:
    """Return a socket for connections that Envoy does not accept. Raises OSError."""
    behind = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    behind.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    behind.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    behind.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _shrink(behind)  # accepted sockets are alike
    try:
        behind.bind(("::", port))
    except OSError:
        behind.close()
        raise
    return behind


def _shrink(one: socket.socket) -> None:
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, KERNEL_BYTES)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward one direction including its end; abort the other side if it breaks."""
    try:
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.transport.abort()


async def stand_by(admin: str, address: str) -> None:
    """Run until SIGTERM."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await Standby(admin, address).run(ended)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True, help="address of this pod")
    parser.add_argument(
        "--admin",
        default="@headroom-admin",
        help="socket, or host and port, of Envoy's admin interface",
    )
    options = parser.parse_args()
    asyncio.run(stand_by(options.admin, options.address))


if __name__ == "__main__":
    main()
