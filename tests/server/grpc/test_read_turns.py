"""Sockets are read for some milliseconds in each round of the loop, in turns of the clients."""

from __future__ import annotations

import asyncio
from collections import Counter
from unittest.mock import Mock

from headroom_server.web.connections.read_turns import (
    READ_BYTES,
    ROUND_S,
    SMALL_READ_BYTES,
    ReadTurns,
)
from headroom_server.web.connections.socket_reads import SocketReads


class Sockets:
    """Connections with much to read, and a clock that each large read moves."""

    def __init__(self, takes_s: float) -> None:
        self.now_s = 0.0
        self.takes_s = takes_s
        self.turns = ReadTurns(lambda: self.now_s)
        self.paused: set[SocketReads] = set()
        self.large: list[str] = []
        """Owners of the large reads, in order."""
        self.lost: set[SocketReads] = set()
        self.read_bytes = Counter[str]()

    def open(self, client: str, *, read_paused: bool = False) -> SocketReads:
        receiver = Mock(read_paused=read_paused)
        one = SocketReads(receiver, self.turns)
        transport = Mock(spec=asyncio.Transport)
        transport.get_extra_info.return_value = (client, 1)
        transport.is_closing.side_effect = lambda: one in self.lost
        transport.pause_reading.side_effect = lambda: self.paused.add(one)
        transport.resume_reading.side_effect = lambda: self.paused.discard(one)
        one.connection_made(transport)

        def received(data: bytes) -> None:
            self.read_bytes[client] += len(data)
            if len(data) > SMALL_READ_BYTES:
                self.large.append(client)
                self.now_s += self.takes_s

        receiver.data_received.side_effect = received
        return one

    def read(self, one: SocketReads) -> None:
        """Do what the loop does for a socket that has more than a read takes."""
        if one not in self.paused:
            one.buffer_updated(len(one.get_buffer(-1)))


async def test_round_of_the_loop_reads_for_some_milliseconds() -> None:
    sockets, per_round = Sockets(takes_s=0.6 * ROUND_S), list[int]()
    connections = [sockets.open("a") for _ in range(20)]
    for _ in range(12):
        before = len(sockets.large)
        for one in connections:
            sockets.read(one)
        per_round.append(len(sockets.large) - before)
        await asyncio.sleep(0)
    assert max(per_round) <= 2
    assert sum(per_round) >= 12, "there is no round without a read while some wait"


async def test_reads_that_take_no_time_do_not_wait() -> None:
    sockets = Sockets(takes_s=0.0)
    for _ in range(20):
        sockets.read(sockets.open("a"))
    assert len(sockets.large) == 20
    assert not sockets.paused


async def test_what_waits_for_its_turn_stays_in_the_socket() -> None:
    sockets = Sockets(takes_s=2 * ROUND_S)
    connections = [sockets.open("a") for _ in range(200)]
    for one in connections:
        sockets.read(one)
    assert len(sockets.paused) == 199
    assert sockets.read_bytes["a"] <= READ_BYTES + 199 * SMALL_READ_BYTES


async def test_client_with_one_connection_waits_for_one_read_of_each_other_client() -> None:
    sockets = Sockets(takes_s=2 * ROUND_S)
    connections = [sockets.open("flood") for _ in range(50)] + [sockets.open("a")]
    for _ in range(4):
        for one in connections:
            sockets.read(one)
        await asyncio.sleep(0)
    assert "a" in sockets.large[:3]


async def test_small_read_is_received_at_once_while_others_wait() -> None:
    sockets = Sockets(takes_s=2 * ROUND_S)
    for _ in range(50):
        sockets.read(sockets.open("flood"))
    probe = sockets.open("kubelet")
    probe.get_buffer(-1)
    probe.buffer_updated(100)
    assert sockets.read_bytes["kubelet"] == 100
    assert probe not in sockets.paused


async def test_connection_that_its_application_paused_is_not_resumed_by_its_turn() -> None:
    sockets = Sockets(takes_s=2 * ROUND_S)
    sockets.read(sockets.open("a"))
    waits = sockets.open("b", read_paused=True)
    sockets.read(waits)
    for _ in range(3):
        await asyncio.sleep(0)
    assert waits in sockets.paused


async def test_connection_that_is_lost_while_it_waits_has_no_turn() -> None:
    sockets = Sockets(takes_s=2 * ROUND_S)
    sockets.read(sockets.open("a"))
    lost, other = sockets.open("b"), sockets.open("c")
    sockets.read(lost)
    sockets.read(other)
    sockets.lost.add(lost)
    for _ in range(3):
        await asyncio.sleep(0)
    assert lost in sockets.paused
    assert other not in sockets.paused
