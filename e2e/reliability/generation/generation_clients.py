"""Clients of a generating server: they read, leave, send malformed bodies, or do not read."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable

import orjson

STEP_S = 0.004
MOST_TOKENS = 120
UNREAD_TOKENS = 4000
UNREAD_S = 4.0
MALFORMED = (b"{", b'{"model":"model"}', b'{"model":"model","prompt":"a","max_token":1}', b"\xff")
# ---- clients
Kind = Callable[[int, random.Random, Counter[str]], Awaitable[None]]


async def client(kind: Kind, port: int, seed: int, seen: Counter[str], over: asyncio.Event) -> None:
    """Behave as this kind, one request after another, until it is over."""
    chance = random.Random(seed)
    while not over.is_set():
        await kind(port, chance, seen)


async def reads(port: int, chance: random.Random, seen: Counter[str]) -> None:
    """Read an answer to its end."""
    async with connected(port) as (reader, writer):
        if await asked(reader, writer, seen, chance.randrange(1, MOST_TOKENS)):
            rest = await reader.read()
            seen["complete" if rest.endswith(b"[DONE]\n\n\r\n0\r\n\r\n") else "broken"] += 1


async def leaves(port: int, chance: random.Random, seen: Counter[str]) -> None:
    """Leave in the middle of an answer."""
    async with connected(port) as (reader, writer):
        if await asked(reader, writer, seen, MOST_TOKENS):
            await asyncio.sleep(STEP_S * chance.randrange(MOST_TOKENS // 2))
            seen["left"] += 1


async def malformed(port: int, chance: random.Random, seen: Counter[str]) -> None:
    """Send what is no request, and expect a 400."""
    async with connected(port) as (reader, writer):
        writer.write(_request(chance.choice(MALFORMED)))
        head = await reader.readuntil(b"\r\n")
        seen["malformed" if b" 400 " in head else "broken"] += 1
    await asyncio.sleep(0.02)


async def does_not_read(port: int, chance: random.Random, seen: Counter[str]) -> None:
    """Ask for a long answer, and read none of it."""
    async with connected(port, receive_bytes=4096) as (reader, writer):
        if await asked(reader, writer, seen, UNREAD_TOKENS):
            await asyncio.sleep(UNREAD_S * chance.random())
            seen["unread"] += 1


@contextlib.asynccontextmanager
async def connected(
    port: int, receive_bytes: int = 0
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect; with a small receive buffer the server soon has unread bytes."""
    plain = socket.socket()
    plain.setblocking(False)
    if receive_bytes:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=plain, limit=receive_bytes or 1 << 16)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def asked(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    seen: Counter[str],
    tokens: int,
    **more: object,
) -> bool:
    """Send a valid request; return whether its stream has begun."""
    fields = {"model": "model", "prompt": "Tell me", "max_tokens": tokens, "stream": True, **more}
    seen["sent"] += 1
    writer.write(_request(orjson.dumps(fields)))
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 429 " in head.partition(b"\r\n")[0]:
        seen["refused"] += 1
    return b" 200 " in head.partition(b"\r\n")[0]


def _request(body: bytes) -> bytes:
    return (
        b"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
        b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    )
