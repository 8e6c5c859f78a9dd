"""A load generator for one HTTP server, in a process of its own: prints one JSON line of results.

Open loop (`--rate`): Poisson arrivals; latency counts from the intended time, whatever the server
does. Closed loop (`--in-flight`): so many requests are always under way, which saturates the
server. Connections are kept.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from dataclasses import dataclass, field
from typing import cast

import uvloop

BODY = b'{"instances":[[1.0,2.0,3.0,4.0]]}'
ANSWER = b'{"predictions":[10.0]}'


@dataclass(slots=True)
class Results:
    """What came back: seconds of each right answer, and how many came otherwise."""

    latencies_s: list[float] = field(default_factory=list)
    other: dict[str, int] = field(default_factory=dict)

    def percentile_s(self, q: float) -> float:
        """Nearest rank; 0 without answers."""
        ordered = sorted(self.latencies_s)
        return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else 0.0


class Connection(asyncio.Protocol):
    """One request at a time on one connection."""

    def __init__(self) -> None:
        self._buffer = b""
        self._answer: asyncio.Future[tuple[bytes, bytes]] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; that of uvloop fits by structure."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Whoever awaits an answer hears of it."""
        self._transport = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionResetError("closed before the answer"))

    def data_received(self, data: bytes) -> None:
        """Collect until head and body are there."""
        self._buffer += data
        head, separator, body = self._buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(body) >= length and self._answer is not None and not self._answer.done():
            self._buffer = body[length:]
            self._answer.set_result((head, body[:length]))

    @property
    def usable(self) -> bool:
        """Whether the other side still listens."""
        return self._transport is not None and not self._transport.is_closing()

    async def ask(self, request: bytes) -> tuple[bytes, bytes]:
        """Send, and wait for head and body."""
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer


class Client:
    """A pool of connections to one server."""

    def __init__(self, port: int, path: str, tenant: str = "") -> None:
        self._port = port
        self._free: list[Connection] = []
        head = (
            f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            f"content-length: {len(BODY)}\r\n"
        )
        head += f"x-tenant: {tenant}\r\n" if tenant else ""
        self._head = head.encode()
        self.results = Results()

    async def once(self, intended_s: float, headers: bytes = b"") -> None:
        """One request and its latency from the intended time; each header ends its line."""
        try:
            connection = await self._connection()
            head, body = await connection.ask(self._head + headers + b"\r\n" + BODY)
        except OSError as error:
            self._count(type(error).__name__)
            return
        if b"connection: close" not in head.lower():
            self._free.append(connection)
        if body == ANSWER:
            self.results.latencies_s.append(time.perf_counter() - intended_s)
        else:
            self._count(head[9:12].decode("latin-1"))

    async def _connection(self) -> Connection:
        while self._free:
            if (connection := self._free.pop()).usable:
                return connection
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(Connection, "127.0.0.1", self._port)
        return connection

    def _count(self, what: str) -> None:
        self.results.other[what] = self.results.other.get(what, 0) + 1


async def open_loop(client: Client, rate: float, seconds: float, seed: int) -> None:
    """Poisson arrivals; returns when the last one is answered."""
    chance, tasks = random.Random(seed), set()
    began_s = due_s = time.perf_counter()
    while (due_s := due_s + chance.expovariate(rate)) < began_s + seconds:
        await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
        task = asyncio.create_task(client.once(due_s))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    if tasks:
        await asyncio.wait(tasks, timeout=10)


async def closed_loop(client: Client, in_flight: int, seconds: float) -> None:
    """So many at all times; each is followed by another until the time is over."""
    until_s = time.perf_counter() + seconds

    async def one_after_the_other() -> None:
        while (now_s := time.perf_counter()) < until_s:
            await client.once(now_s)

    await asyncio.gather(*(one_after_the_other() for _ in range(in_flight)))


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--path", default="/v1/models/model:predict")
    parser.add_argument("--rate", type=float)
    parser.add_argument("--in-flight", type=int)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    client = Client(options.port, options.path)
    began_s = time.perf_counter()
    if options.rate is not None:
        uvloop.run(open_loop(client, options.rate, options.seconds, options.seed))
    else:
        uvloop.run(closed_loop(client, options.in_flight or 1, options.seconds))
    results = client.results
    print(
        json.dumps(
            {
                "seconds": time.perf_counter() - began_s,
                "ok": len(results.latencies_s),
                "other": results.other,
                "p50_s": results.percentile_s(0.50),
                "p95_s": results.percentile_s(0.95),
                "p99_s": results.percentile_s(0.99),
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
