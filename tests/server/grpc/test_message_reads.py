"""Messages of gRPC are read in turns, within the bytes that all clients share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from headroom_server.errors import InvalidRequestError, QueueFullError, SlowRequestError
from headroom_server.open_inference_grpc.message_reads import MessageReads, client_of
from headroom_server.web.shared_bound import SharedBound


class FakeCall:
    """A call whose message is complete when the test says so."""

    def __init__(self, message: object = b"m", peer: str = "ipv4:10.0.0.1:5") -> None:
        self.complete = asyncio.Event()
        self.begun = False
        self._message, self._peer = message, peer

    def peer(self) -> str:
        return self._peer

    async def read(self) -> object:
        self.begun = True
        await self.complete.wait()
        return self._message


def reads(within_s: float = 5.0) -> tuple[MessageReads, SharedBound]:
    receiving = SharedBound(40)
    return MessageReads(SharedBound(4), receiving, 10, within_s), receiving


@asynccontextmanager
async def read(
    one: MessageReads, client: str, call: FakeCall
) -> AsyncIterator[asyncio.Task[bytes]]:
    async def run() -> bytes:
        async with one.message(client, call) as raw:
            return raw

    task = asyncio.create_task(run())
    await asyncio.sleep(0)
    yield task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_unfinished_messages_of_one_client_leave_room_for_another() -> None:
    one, receiving = reads()
    slow = [FakeCall() for _ in range(4)]
    async with (
        read(one, "a", slow[0]) as first,
        read(one, "a", slow[1]),
        read(one, "a", slow[2]),
        read(one, "a", slow[3]),
    ):
        assert [call.begun for call in slow] == [True, True, False, False]
        other = FakeCall()
        other.complete.set()
        async with read(one, "b", other) as task:
            assert await task == b"m"
        slow[0].complete.set()
        assert await first == b"m"
        await asyncio.sleep(0)
        assert slow[2].begun
        assert receiving.held == 20
    assert receiving.held == 0


async def test_message_that_does_not_arrive_ends_in_time_and_gives_its_bytes_back() -> None:
    one, receiving = reads(within_s=0.01)
    for client in ("a", "a", "a"):
        with pytest.raises(SlowRequestError, match="must be complete within"):
            async with one.message(client, FakeCall()):
                raise AssertionError
    assert receiving.held == 0


async def test_call_without_message_is_invalid() -> None:
    one, receiving = reads()
    call = FakeCall(message=object())
    call.complete.set()
    with pytest.raises(InvalidRequestError, match="must have one message"):
        async with one.message("a", call):
            raise AssertionError
    assert receiving.held == 0


async def test_waiting_call_that_is_cancelled_with_its_turn_leaks_nothing() -> None:
    one, receiving = reads()
    calls = [FakeCall() for _ in range(4)]
    async with (
        read(one, "a", calls[0]) as first,
        read(one, "a", calls[1]) as second,
        read(one, "a", calls[2]) as third,
        read(one, "a", calls[3]) as fourth,
    ):
        for task in (third, first, fourth, second):
            task.cancel()
    await asyncio.sleep(0)
    assert receiving.held == 0
    assert receiving.fits("a", 20)


def test_open_calls_are_bounded_per_client() -> None:
    one, _ = reads()
    with one.admitted("a"), one.admitted("a"):
        with pytest.raises(QueueFullError, match="at most 4 calls may be open"), one.admitted("a"):
            raise AssertionError
        with one.admitted("b"):
            pass
    with one.admitted("a"):
        pass


@pytest.mark.parametrize(
    ("peer", "client"),
    [
        ("ipv4:10.0.0.1:4321", "10.0.0.1"),
        ("ipv6:%5B2001:db8::1%5D:4321", "2001:db8::1"),
        ("unix:/run/socket", "unix:/run/socket"),
    ],
)
def test_client_of_a_call_is_its_address(peer: str, client: str) -> None:
    assert client_of(FakeCall(peer=peer)) == client
