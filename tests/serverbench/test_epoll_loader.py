"""The load generator against a server that is known: every end has its name and its time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from serverbench.generator.arrivals import Segment
from serverbench.generator.exchange import Kind, Plan, Status, request_bytes
from serverbench.generator.loader import Loader

pytestmark = pytest.mark.clock

SLOW_S = 0.05


class Peculiar:
    """Answers as the path of a request asks."""

    def __init__(self) -> None:
        self.port = 0
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        self._ready.wait(5)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._over = asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._over.wait()
        server.close()
        connected = asyncio.all_tasks() - {asyncio.current_task()}
        for task in connected:
            task.cancel()
        await asyncio.gather(*connected, return_exceptions=True)
        await asyncio.sleep(0.01)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answered(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        match head.split()[1]:
            case b"/gone":
                return False
            case b"/never":
                await asyncio.sleep(30)
            case b"/busy":
                writer.write(b"HTTP/1.1 429 Busy\r\ncontent-length: 0\r\n\r\n")
            case b"/once":
                writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok")
                return False
            case b"/pieces":
                writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n")
                await writer.drain()
                await asyncio.sleep(0.001)
                writer.write(b"ok\r\n0\r\n\r\n")
            case _:
                await asyncio.sleep(SLOW_S)
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        return True


@pytest.fixture
def peculiar() -> Iterator[Peculiar]:
    server = Peculiar()
    yield server
    server.stop()


def asked(port: int, path: str, expected: str = "ok", after_s: float | None = None) -> Loader:
    kind = Kind(request=request_bytes(path, b"{}"), expected=expected, abandoned_after_s=after_s)
    plan = Plan(
        port=port, segments=(Segment(100.0, 0.2),), kinds=(kind,), warm_connections=0, timeout_s=0.3
    )
    loader = Loader(plan)
    loader.run()
    loader.close()
    return loader


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 200),
        ("/once", 200),
        ("/pieces", 200),
        ("/busy", 429),
        ("/gone", Status.LOST),
        ("/never", Status.TIMED_OUT),
    ],
)
def test_each_outcome_has_its_status(peculiar: Peculiar, path: str, status: int) -> None:
    loader = asked(peculiar.port, path)
    assert Counter(loader.log.statuses) == {status: len(loader.log.due_s)}
    answered = status > 0
    assert all((took_s is not None) == answered for took_s in loader.log.took_s)


def test_wrong_answer_and_abandoned_request_have_different_statuses(peculiar: Peculiar) -> None:
    assert set(asked(peculiar.port, "/", expected="no").log.statuses) == {Status.WRONG}
    assert set(asked(peculiar.port, "/", after_s=SLOW_S / 5).log.statuses) == {Status.ABANDONED}


def test_latency_counts_from_the_intended_instant(peculiar: Peculiar) -> None:
    loader = asked(peculiar.port, "/")
    took_s = [one for one in loader.log.took_s if one is not None]
    assert min(took_s) >= SLOW_S
    # The quickest tell: a crowded machine only adds.
    assert min(took_s) < SLOW_S + 0.05
    assert min(loader.log.late_s) < 0.02
    # about five are under way at a time: connections are kept
    assert loader.connections < len(loader.log.due_s)


def test_server_without_a_listener_loses_every_request() -> None:
    began_s = time.monotonic()
    loader = asked(1, "/")
    assert set(loader.log.statuses) == {Status.LOST}
    assert time.monotonic() - began_s < 2.0


def test_closed_loop_keeps_so_many_requests_in_flight(peculiar: Peculiar) -> None:
    kind = Kind(request=request_bytes("/", b"{}"), expected="ok")
    plan = Plan(
        port=peculiar.port,
        segments=(Segment(1.0, 0.5),),
        kinds=(kind,),
        warm_connections=0,
        in_flight=4,
    )
    loader = Loader(plan)
    loader.warm()
    loader.run()
    loader.close()
    assert set(loader.log.statuses) == {200}
    assert loader.connections == 4
    assert 4 <= len(loader.log.due_s) <= 4 * 0.5 / SLOW_S + 4
    assert len(loader.log.took_s) == len(loader.log.kinds) == len(loader.log.due_s)


def test_client_keeps_its_connections_to_its_port(peculiar: Peculiar) -> None:
    kind = Kind(request=request_bytes("/busy", b"{}"))
    plan = Plan(
        port=1,
        clients=(peculiar.port, 1),
        segments=(Segment(200.0, 0.5),),
        kinds=(kind,),
        warm_connections=0,
    )
    loader = Loader(plan)
    loader.run()
    loader.close()
    counts = Counter(loader.log.statuses)
    assert set(counts) == {429, Status.LOST}
    assert min(counts.values()) > 0.25 * len(loader.log.due_s)
