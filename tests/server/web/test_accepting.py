"""Connections that wait to be accepted do not delay a probe by a round of the loop each."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import uvloop

from headroom_server.process import ACCEPTS_PER_ROUND, BACKLOG, acceptors, listen

WAITING = 128


async def _rounds(listener: socket.socket) -> int:
    """Return the rounds of the loop in which all waiting connections are accepted."""
    accepted = 0

    class Counted(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            nonlocal accepted
            accepted += 1

    loop, rounds = asyncio.get_running_loop(), 0
    async with contextlib.AsyncExitStack() as stack:
        for one in acceptors(listener):
            await stack.enter_async_context(
                await loop.create_server(Counted, sock=one, backlog=BACKLOG)
            )
        with contextlib.ExitStack() as clients:
            for _ in range(WAITING):
                clients.enter_context(socket.create_connection(listener.getsockname()))
            while accepted < WAITING:
                await asyncio.sleep(0)
                rounds += 1
    return rounds


def test_waiting_connections_are_accepted_in_few_rounds() -> None:
    assert uvloop.run(_rounds(listen("127.0.0.1", 0))) <= 2 * WAITING / ACCEPTS_PER_ROUND
