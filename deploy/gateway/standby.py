"""Take connections while the Envoy beside is away, and lead them to another gateway.

An Envoy that was killed is missed at once, but for some 30 to 100 ms a Service still leads to it,
and the kernel would refuse connections. This listens at Envoy's ports too, on `[::]` for both
families, where Envoy has `0.0.0.0`: the kernel gives a connection of IPv4 to the closer match, so
to Envoy whenever that listens. (One user runs both: `SO_REUSEPORT` asks for it.) Which ports there
are, and which gateways, Envoy itself says while it lives. Bytes are passed as they come.
"""

import argparse
import asyncio
import contextlib
import json
import random
import signal
import socket
from functools import partial
from http.client import HTTPConnection, HTTPException

GATEWAYS = "headroom.gateways"
"""Their addresses in Envoy's runtime, where the operator writes them."""
FIRST_PORT, PORTS = 20_000, 10_000
LOOK_EVERY_S = 1.0
CONNECT_WITHIN_S = 0.3
MOST = 4096
"""Connections led at once."""
CHUNK_BYTES = 1 << 16
LAST_S = 30.0
"""After SIGTERM, for connections that were led."""


class Standby:
    """What is known of the Envoy beside, and who is led elsewhere."""

    def __init__(self, admin: str, address: str) -> None:
        """`address` is this pod's, at which there is no other gateway."""
        self._admin = admin
        self._address = address
        self._others: list[str] = []
        self._servers: dict[int, asyncio.Server] = {}
        self._led: set[asyncio.Task[None]] = set()

    async def run(self, until: asyncio.Event) -> None:
        """Stand by until told to end, and then until nobody is led any more."""
        following = asyncio.create_task(self._follow())
        await until.wait()
        following.cancel()
        for server in self._servers.values():
            server.close()
        if self._led:
            await asyncio.wait(self._led, timeout=LAST_S)

    async def _follow(self) -> None:
        """Do as Envoy does; while it is away what it said last stands."""
        while True:
            with contextlib.suppress(OSError, HTTPException, ValueError, KeyError):
                listeners, runtime = await asyncio.to_thread(self._ask)
                self._others = [one for one in gateways_of(runtime) if one != self._address]
                await self._listen(ports_of(listeners))
            await asyncio.sleep(LOOK_EVERY_S)

    def _ask(self) -> tuple[bytes, bytes]:
        return _page(self._admin, "/listeners?format=json"), _page(
            self._admin, "/runtime?format=json"
        )

    async def _listen(self, ports: set[int]) -> None:
        for port in self._servers.keys() - ports:
            self._servers.pop(port).close()
        for port in ports - self._servers.keys():
            with contextlib.suppress(OSError):  # tried again at the next look
                self._servers[port] = await asyncio.start_server(
                    partial(self._came, port), sock=_behind(port), backlog=MOST
                )

    def _came(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._lead(port, reader, writer))
        self._led.add(task)
        task.add_done_callback(self._led.discard)

    async def _lead(
        self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Lead a connection to another gateway; one that comes from there would go in circles."""
        came_from = writer.get_extra_info("peername")[0].removeprefix("::ffff:")
        refused = came_from in self._others or len(self._led) > MOST
        found = None if refused else await self._reach(port)
        if found is None:
            writer.transport.abort()
            return
        inner, outer = found
        try:
            await asyncio.gather(_pass(reader, outer), _pass(inner, writer))
        finally:
            outer.close()
            writer.close()

    async def _reach(self, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        for address in random.sample(self._others, len(self._others)):
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_WITHIN_S):
                    return await asyncio.open_connection(address, port)
        return None


def ports_of(listeners: bytes) -> set[int]:
    """Read the services' ports from Envoy's list of listeners; raise ValueError or KeyError."""
    said = json.loads(listeners).get("listener_statuses", [])
    sockets = [one["local_address"].get("socket_address", {}) for one in said]
    ports = {int(one.get("port_value", 0)) for one in sockets}
    return {port for port in ports if FIRST_PORT <= port < FIRST_PORT + PORTS}


def gateways_of(runtime: bytes) -> list[str]:
    """Read the gateways' addresses from Envoy's runtime; raise ValueError or KeyError."""
    known = json.loads(runtime)["entries"].get(GATEWAYS, {})
    return str(known.get("final_value", "")).split()


def _page(admin: str, path: str) -> bytes:
    connection = HTTPConnection(admin, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    finally:
        connection.close()


def _behind(port: int) -> socket.socket:
    """Listen for what Envoy does not take. Raises OSError."""
    behind = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    behind.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    behind.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    behind.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        behind.bind(("::", port))
    except OSError:
        behind.close()
        raise
    return behind


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass one direction on to its end, and the end too; where it breaks, the other end knows."""
    try:
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.transport.abort()


async def stand_by(admin: str, address: str) -> None:
    """Stand by until SIGTERM."""
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    await Standby(admin, address).run(told)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True, help="of this pod")
    parser.add_argument("--admin", default="127.0.0.1:9901", help="host and port of Envoy's own")
    options = parser.parse_args()
    asyncio.run(stand_by(options.admin, options.address))


if __name__ == "__main__":
    main()
