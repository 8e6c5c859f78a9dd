"""The memory of the server at its bounds, in a cgroup of the size that the sample has.

    limit >= idle + 2 x arriving + 16 x largest JSON body + waiting bytes + connections x 50 kB

Arriving bytes count twice, because a body is copied once when it is complete; one body at a time
is parsed. The sample's model takes bodies of at most 65 kB, so its 256 MiB hold 75 idle, 64 for
arriving bytes, 1 for parsing, and 100 for 2048 connections.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import pytest

from memory_limit import memory_limit, peak_bytes
from server_process import Server, serving

pytestmark = pytest.mark.clock

MIB = 1 << 20
LIMIT_BYTES = 256 * MIB
CLIENTS = 100
PREDICT, INFER = b"/v1/models/m:predict", b"/v2/models/m/infer"
READ_BYTES = 256 * 1024


def post(path: bytes, body: bytes, *, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (path, size, body)


def chunked(path: bytes, body: bytes) -> bytes:
    head = b"POST %s HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" % path
    return head + b"%x\r\n%s\r\n" % (len(body), body)


def tensor(data: bytes) -> bytes:
    return b'{"inputs":[{"name":"x","shape":[8,150528],"datatype":"FP64","data":[' + data


LISTS = b'{"instances":[' + b"[]," * 2_700_000 + b"[]]}"
ATTACKS = {
    "lists": post(PREDICT, LISTS),
    "objects": post(INFER, b'{"inputs":[' + b"{}," * 2_700_000 + b"{}]}"),
    "numbers": post(INFER, tensor(b"1.5," * 2_000_000 + b"1]}]}")),
    "unfinished": post(PREDICT, LISTS[: 7 * MIB], length=8 * MIB),
    "chunks": chunked(PREDICT, LISTS[: 7 * MIB]),
    "head": b"GET / HTTP/1.1\r\nhost: x\r\n" + b"a: b\r\n" * 10_000,
    "pipeline": b"GET /v2 HTTP/1.1\r\nhost: x\r\n\r\n" * (READ_BYTES // 30),
    "unread": (b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n") * 30,
}


async def attack(port: int, data: bytes, until: asyncio.Event) -> None:
    """Send it as fast as the server takes it, read nothing, and stay for a while."""
    with suppress(OSError):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(6.0):
                writer.write(data)
                await writer.drain()
                await until.wait()
        writer.transport.abort()


async def slowest_probe_s(server: Server, until: asyncio.Event) -> float:
    """Probe twice a second, and return the longest time to an answer."""
    port, slowest_s = int(server.url.rpartition(":")[2]), 0.0
    while not until.is_set():
        began_s = time.perf_counter()
        reader, writer = await asyncio.open_connection(
            "127.0.0.2", port, local_addr=("127.0.0.2", 0)
        )
        writer.write(b"GET /v2/health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
        writer.close()
        slowest_s = max(slowest_s, time.perf_counter() - began_s)
        await asyncio.sleep(0.5)
    return slowest_s


async def drive(server: Server, name: str) -> float:
    """Attack from all clients at once; return how long the slowest probe of another one waited."""
    until = asyncio.Event()
    probe = asyncio.create_task(slowest_probe_s(server, until))
    port = int(server.url.rpartition(":")[2])
    clients = [asyncio.create_task(attack(port, ATTACKS[name], until)) for _ in range(CLIENTS)]
    await asyncio.wait(clients, timeout=3.0)
    until.set()
    await asyncio.gather(*clients)
    return await probe


@contextmanager
def limited(server: Server) -> Iterator[None]:
    """Run a server in the cgroup; without one, its peak alone is compared."""
    with memory_limit(server.process.pid, LIMIT_BYTES):
        yield
        assert server.process.returncode is None, "killed"
        assert peak_bytes(server.process.pid) < LIMIT_BYTES


@asynccontextmanager
async def server_of(**settings: object) -> AsyncIterator[Server]:
    async with serving(HOST="0.0.0.0", **settings) as server:
        await server.ready()
        yield server


async def test_sample_survives_every_attack_at_its_limit() -> None:
    async with server_of(MAX_BATCH_SIZE=4) as server:
        with limited(server):
            for name in ATTACKS:
                slowest_s = await drive(server, name)
                assert server.process.returncode is None, name
                assert slowest_s < 5.0, name  # on a machine with other tests
            await server.ready()


async def test_model_of_large_bodies_survives_with_a_bound_on_waiting_bytes() -> None:
    """75 idle + 2 x 16 of one client + 16 x 8 to parse one body + 16 waiting = 251 MiB."""
    many = {"EMULATED_INPUT_SIZE": 150_528, "MAX_WAITING_BYTES": 16 * MIB}
    async with server_of(**many) as server:
        with limited(server):
            for name in ("lists", "objects", "numbers", "chunks"):
                await drive(server, name)
                assert server.process.returncode is None, name
            await server.ready()
