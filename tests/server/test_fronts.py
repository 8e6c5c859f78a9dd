"""Front processes: the same answers and accounts as without, and nobody lost who could be kept."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from headroom_server.fronts import wire
from headroom_server.fronts.channel import ARENA_BYTES, INLINE_BYTES, Channel
from headroom_server.settings import InvalidSettingsError, from_environment, merged
from server_process import Server, serving

TYPED = "/v1/models/m:predict"
TENSORS = "/v2/models/m/infer"
GOOD = b'{"instances":[[1,2,3,4]]}'
TENSOR = b'{"inputs":[{"name":"x","shape":[1,4],"datatype":"FP64","data":[1,2,3,4]}]}'
HEAD = TENSOR.replace(b'"data":[1,2,3,4]', b'"parameters":{"binary_data_size":32}')
BINARY = HEAD + struct.pack("<4d", 1, 2, 3, 4)
BINARY_HEADER = f"inference-header-content-length: {len(HEAD)}"


def request(path: str, body: bytes, *headers: str, method: str = "POST") -> bytes:
    how = "transfer-encoding: chunked" if "chunked" in headers else f"content-length: {len(body)}"
    said = [one for one in headers if one != "chunked"]
    if "chunked" in headers:
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    head = "\r\n".join((f"{method} {path} HTTP/1.1", "host: x", how, *said))
    return head.encode() + b"\r\n\r\n" + body


class Wire:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    @asynccontextmanager
    async def to(cls, server: Server) -> AsyncIterator[Wire]:
        port = int(server.url.rpartition(":")[2])
        one = cls(*await asyncio.open_connection("127.0.0.1", port))
        try:
            yield one
        finally:
            one.writer.close()

    async def ask(self, data: bytes) -> tuple[bytes, set[bytes], bytes]:
        """Status line, headers and body of the next answer."""
        self.writer.write(data)
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 10)
        status, *headers = head[:-4].split(b"\r\n")
        length = next(int(one[16:]) for one in headers if one.startswith(b"content-length: "))
        return status, set(headers), await self.reader.readexactly(length)


async def counters(server: Server) -> dict[str, float]:
    """What has been counted of requests."""
    async with aiohttp.ClientSession() as http, http.get(f"{server.url}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    counted = ("headroom_requests_", "headroom_deadlines")
    return {
        name.replace('{model="m"}', "").replace('model="m",', ""): float(value)
        for name, _, value in (line.rpartition(" ") for line in lines)
        if name.startswith(counted) and not name.startswith("#")
    }


def balanced(counted: dict[str, float]) -> bool:
    ended = sum(n for name, n in counted.items() if name.startswith("headroom_requests_total"))
    waits = counted["headroom_requests_waiting"] + counted["headroom_requests_running"]
    return counted["headroom_requests_received_total"] == ended + waits


def fronts(server: Server) -> list[int]:
    """Process ids of the fronts that live."""
    parent = server.process.pid
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [
        int(pid)
        for pid in children
        if b"headroom_server.fronts" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


CASES = [
    (request(TYPED, GOOD), b"200"),
    (request(TENSORS, TENSOR), b"200"),
    (request(TENSORS, BINARY, BINARY_HEADER), b"200"),
    (request("/v2/models/m/versions/1/infer", TENSOR), b"200"),
    (request(TENSORS + "?a=b", TENSOR), b"200"),
    (request("/v2/models/%6d/infer", TENSOR), b"200"),
    (request(TYPED, GOOD, "chunked"), b"200"),
    (request(TYPED, GOOD, "x-request-timeout: 5", "x-tenant: a", "x-request-priority: 0"), b"200"),
    (request(TYPED, b" " * 60_000 + GOOD), b"200"),
    (request(TYPED, GOOD, "expect: 100-continue"), b"100"),
    (request(TYPED, b""), b"400"),
    (request(TYPED, b"{"), b"400"),
    (request(TYPED, b'{"instances":[["a"]]}'), b"400"),
    (request(TENSORS, b'{"inputs":[]}'), b"400"),
    (request(TENSORS, TENSOR, "inference-header-content-length: 9"), b"400"),
    (request(TYPED, GOOD, "x-request-priority: 11"), b"400"),
    (request(TYPED, GOOD, "x-request-timeout: 0.000001"), b"429"),
    (request("/v1/models/q:predict", GOOD), b"404"),
    (request("/v2/models/m/versions/7/infer", TENSOR), b"404"),
    (request("/nowhere", GOOD), b"404"),
    (request(TYPED, b"", method="GET"), b"405"),
    (request(TYPED, b"\x1f\x8b", "content-encoding: gzip"), b"415"),
    (request(TYPED, b'{"instances":[' + b",".join([b"[1,2,3,4]"] * 9) + b"]}"), b"413"),
    (request(TYPED, b" " * 70_000 + GOOD), b"413"),
    (request("/v2/health/live", b"", method="GET"), b"200"),
    (request("/v2/models/m", b"", method="GET"), b"200"),
    (b"HELLO\r\n\r\n", b"400"),
]


async def test_answers_and_accounts_are_those_of_a_server_without_fronts() -> None:
    async with (
        serving(FRONTS=0, MAX_BODY_BYTES=66_000) as plain,
        serving(FRONTS=2, MAX_BODY_BYTES=66_000) as fronted,
    ):
        seen = []
        for server in (plain, fronted):
            await server.ready()
            answers = []
            for data, _ in CASES:
                async with Wire.to(server) as connection:
                    answers.append(await asked(connection, data))
            seen.append((answers, await counters(server)))
    (answers, counted), (others, others_counted) = seen
    for (data, status), first, second in zip(CASES, answers, others, strict=True):
        assert first[0].split()[1] == second[0].split()[1] == status, data[:80]
        assert first[2] == second[2], data[:80]
        if status != b"429":  # whose retry-after has jitter
            assert first[1] == second[1], data[:80]
    assert counted == others_counted
    assert balanced(counted)
    assert counted['headroom_requests_total{outcome="ok"}'] == 10


async def asked(connection: Wire, data: bytes) -> tuple[bytes, set[bytes], bytes]:
    if b"100-continue" not in data:
        return await connection.ask(data)
    head, _, body = data.partition(b"\r\n\r\n")
    connection.writer.write(head + b"\r\n\r\n")
    interim = await asyncio.wait_for(connection.reader.readuntil(b"\r\n\r\n"), 10)
    _, headers, answer = await connection.ask(body)
    return interim.partition(b"\r\n")[0], headers, answer


async def test_one_connection_has_requests_of_all_kinds_and_pipelines_them() -> None:
    async with serving(FRONTS=1) as server:
        await server.ready()
        live = request("/v2/health/live", b"", method="GET")
        data = [request(TYPED, GOOD), live, request(TYPED, b"{"), request(TENSORS, TENSOR), live]
        expected = [b"200", b"200", b"400", b"200", b"200"]
        async with Wire.to(server) as connection:
            for _ in range(3):
                for one, status in zip(data, expected, strict=True):
                    assert (await connection.ask(one))[0].split()[1] == status
                answers = [await connection.ask(b"".join(data))]
                answers += [await connection.ask(b"") for _ in data[1:]]
                assert [answer[0].split()[1] for answer in answers] == expected
                stream, cut = b"".join(data), 37 * (1 + len(answers))
                for at in range(0, len(stream), cut):  # pieces come while others are answered
                    connection.writer.write(stream[at : at + cut])
                    await asyncio.sleep(0.001)
                answers = [await connection.ask(b"") for _ in data]
                assert [answer[0].split()[1] for answer in answers] == expected
            whole = request(TYPED, GOOD)
            for cut in (1, 60, len(whole) - 1):
                connection.writer.write(whole[:cut])
                await asyncio.sleep(0.05)
                assert (await connection.ask(whole[cut:]))[2] == b'{"predictions":[10.0]}'
        assert balanced(await counters(server))


async def test_what_comes_before_a_model_is_loaded_is_answered_and_counted() -> None:
    async with serving(FRONTS=1, EMULATED_LOAD_S=60) as server:
        async with asyncio.timeout(20):
            while not fronts(server):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.02)
        async with Wire.to(server) as connection:
            status, headers, _ = await connection.ask(request(TYPED, GOOD))
            assert status.split()[1] == b"503"
            assert b"retry-after: 1" in headers
        counted = await counters(server)
        assert counted['headroom_requests_refused_total{reason="not_ready"}'] == 1
        assert balanced(counted)
        server.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(server.process.wait(), 5) == 0


async def test_a_full_queue_is_answered_as_without_fronts() -> None:
    async with (
        serving(FRONTS=1, EMULATED_FIXED_COST_S=0.5, MAX_BATCH_SIZE=1, MAX_WAITING=2) as server,
        aiohttp.ClientSession() as http,
    ):
        url, body = f"{server.url}{TYPED}", {"instances": [[1, 2, 3, 4]]}
        await server.ready()

        async def ask() -> tuple[int, str | None]:
            async with http.post(url, json=body) as answer:
                await answer.read()
                return answer.status, answer.headers.get("retry-after")

        first = asyncio.create_task(ask())
        await server.shows("requests_running", 1)  # it waits no more, and takes half a second
        found = await asyncio.gather(first, *(ask() for _ in range(4)))
        assert sorted(status for status, _ in found) == [200, 200, 200, 429, 429]
        assert all(1 <= int(after or 0) <= 30 for status, after in found if status == 429)
        counted = await counters(server)
        assert balanced(counted)
        assert counted['headroom_requests_refused_total{reason="queue_full"}'] == 2


async def test_large_tensors_go_through_shared_memory() -> None:
    size = 50_000
    async with serving(FRONTS=1, EMULATED_INPUT_SIZE=size) as server:
        await server.ready()
        head = (
            b'{"inputs":[{"name":"x","shape":[1,%d],"datatype":"FP64",'
            b'"parameters":{"binary_data_size":%d}}]}' % (size, 8 * size)
        )
        body = head + struct.pack(f"<{size}d", *range(size))
        data = request(TENSORS, body, f"inference-header-content-length: {len(head)}")
        expected = b'"data":[%d.0]' % (size * (size - 1) // 2)

        async def several() -> None:
            async with Wire.to(server) as connection:
                for _ in range(3):
                    _, _, answer = await connection.ask(data)
                    assert expected in answer

        await asyncio.gather(*(several() for _ in range(8)))


@dataclass
class End:
    """Remembers what comes out of a channel."""

    frames: list[tuple[int, bytes]] = field(default_factory=list)
    visitors: list[tuple[socket.socket, float, bytes]] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    def received(self, kind: int, payload: bytes) -> None:
        self.frames.append((kind, payload))

    def visited(self, visitor: socket.socket, retire_at_s: float, data: bytes) -> None:
        self.visitors.append((visitor, retire_at_s, data))

    def flushing(self) -> None:
        pass

    def lost(self) -> None:
        self.gone.set()


async def test_a_channel_carries_small_and_large_and_gets_its_memory_back() -> None:
    loop = asyncio.get_running_loop()
    memories = [os.memfd_create("test") for _ in range(2)]
    for memory in memories:
        os.ftruncate(memory, ARENA_BYTES)
    copies = [os.dup(memory) for memory in memories]
    streams, visitors = socket.socketpair(), socket.socketpair(type=socket.SOCK_SEQPACKET)
    ends = [End(), End()]
    a = Channel(ends[0], memories[0], memories[1], visitors[0])
    b = Channel(ends[1], copies[1], copies[0], visitors[1])
    await loop.create_connection(lambda: a, sock=streams[0])
    await loop.create_connection(lambda: b, sock=streams[1])
    third = ARENA_BYTES // 3
    parts = [b"x" * (third - 5), b"y" * 5]
    for turn in range(4):  # a third each: without room given back, the fourth had to be inline
        blob = a.put(parts)
        assert blob.offset != wire.INLINE
        a.send(wire.outputs(turn, blob))
        while len(ends[1].frames) <= turn:  # noqa: ASYNC110 - the loop itself brings it
            await asyncio.sleep(0.001)
        key, read = wire.read_outputs(ends[1].frames[turn][1])
        assert key == turn
        assert [bytes(part) for part in b.get(read)] == parts
        await asyncio.sleep(0.02)
    assert a.put([b"z" * INLINE_BYTES]).offset == wire.INLINE
    assert a.put([b"z" * (ARENA_BYTES + 1)]).offset == wire.INLINE
    b.close()
    await asyncio.wait_for(ends[0].gone.wait(), 5)
    a.close()
    await asyncio.wait_for(ends[1].gone.wait(), 5)


async def test_a_front_that_is_killed_loses_its_own_requests_and_is_replaced() -> None:
    async with serving(FRONTS=2, EMULATED_FIXED_COST_S=0.2, MAX_BATCH_SIZE=4) as server:
        await server.ready()
        answered = lost = 0
        stop = asyncio.Event()

        async def client() -> None:
            nonlocal answered, lost
            while not stop.is_set():
                try:
                    async with Wire.to(server) as connection:
                        while not stop.is_set():
                            status, _, _ = await connection.ask(request(TYPED, GOOD))
                            assert status.split()[1] == b"200"
                            answered += 1
                except (ConnectionError, asyncio.IncompleteReadError):
                    lost += 1

        clients = [asyncio.create_task(client()) for _ in range(12)]
        await asyncio.sleep(0.5)
        before = fronts(server)
        assert len(before) == 2
        os.kill(before[0], signal.SIGKILL)
        async with asyncio.timeout(15):
            while len(fronts(server)) < 2 or before[0] in fronts(server):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.3)
        stop.set()
        await asyncio.gather(*clients)
        assert lost <= 12
        counted = await counters(server)
        assert counted["headroom_requests_waiting"] == counted["headroom_requests_running"] == 0
        assert balanced(counted)
        assert counted['headroom_requests_total{outcome="ok"}'] == answered
        assert counted['headroom_requests_total{outcome="cancelled"}'] <= lost
        assert before[1] in fronts(server)


async def test_a_client_that_leaves_is_counted_once_and_costs_no_batch() -> None:
    async with serving(FRONTS=1, EMULATED_FIXED_COST_S=0.5, MAX_BATCH_SIZE=1) as server:
        await server.ready()
        for number in range(3):
            async with Wire.to(server) as connection:
                connection.writer.write(request(TYPED, GOOD))
                await server.shows("requests_received_total", number + 1)
        await server.shows("requests_total", 3, outcome="cancelled")
        counted = await counters(server)
        assert counted['headroom_requests_total{outcome="cancelled"}'] == 3
        assert counted["headroom_requests_waiting"] == 0
        assert balanced(counted)


async def test_sixteen_in_flight_are_answered_when_the_server_is_told_to_stop() -> None:
    async with (
        serving(FRONTS=2, EMULATED_FIXED_COST_S=0.15, MAX_BATCH_SIZE=2, DRAIN_DELAY_S=0) as server,
        aiohttp.ClientSession() as http,
    ):
        await server.ready()

        async def ask() -> tuple[int, str | None]:
            async with http.post(
                f"{server.url}{TYPED}", json={"instances": [[1, 2, 3, 4]]}
            ) as answer:
                assert await answer.json() == {"predictions": [10.0]}
                return answer.status, answer.headers.get("connection")

        tasks = [asyncio.create_task(ask()) for _ in range(16)]
        await server.shows("requests_received_total", 16)
        pids = fronts(server)
        server.process.send_signal(signal.SIGTERM)
        assert [status for status, _ in await asyncio.gather(*tasks)] == [200] * 16
        assert (await tasks[-1])[1] == "close"
        assert await asyncio.wait_for(server.process.wait(), 10) == 0
        assert not any(map(alive, pids))


async def test_fronts_end_with_a_device_process_that_is_killed() -> None:
    async with serving(FRONTS=2) as server:
        await server.ready()
        async with asyncio.timeout(10):
            while len(fronts(server)) < 2:  # noqa: ASYNC110 - other processes
                await asyncio.sleep(0.02)
        pids = fronts(server)
        server.process.kill()
        await server.process.wait()
        async with asyncio.timeout(5):
            while any(alive(pid) for pid in pids):  # noqa: ASYNC110 - other processes
                await asyncio.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        return re.search(r"State:\s+Z", Path(f"/proc/{pid}/status").read_text()) is None
    except FileNotFoundError:
        return False


async def test_models_come_and_go_and_a_reload_loses_nobody(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.toml").write_text(
            "engine = 'emulated'\n[emulated]\nload_s = 0\nfixed_cost_s = 0.001\ninput_size = 2\n"
        )
    async with (
        serving(
            FRONTS=1,
            ENGINE="torch",
            MODEL_URI=f"file://{tmp_path}",
            MODELS="a",
            MODEL_CONTROL="explicit",
        ) as server,
        aiohttp.ClientSession() as http,
    ):
        await server.ready()
        stop, statuses = asyncio.Event(), []

        async def status(path: str, body: object) -> int:
            async with http.post(f"{server.url}{path}", json=body) as answer:
                await answer.read()
                return answer.status

        async def busy() -> None:
            while not stop.is_set():
                statuses.append(await status("/v1/models/a:predict", {"instances": [[1, 2]]}))

        client = asyncio.create_task(busy())
        assert await status("/v1/models/b:predict", {"instances": [[1, 2]]}) == 404
        for _ in range(3):
            assert await status("/v2/repository/models/a/load", {}) == 200
        assert await status("/v2/repository/models/b/load", {}) == 200
        for _ in range(10):
            assert await status("/v1/models/b:predict", {"instances": [[1, 2]]}) == 200
            await asyncio.sleep(0.01)
        assert await status("/v2/repository/models/b/unload", {}) == 200
        assert await status("/v1/models/b:predict", {"instances": [[1, 2]]}) == 404
        stop.set()
        await client
        assert set(statuses) == {200}


@pytest.mark.parametrize("count", ["-1", "65", "two"])
def test_the_number_of_fronts_has_bounds(count: str) -> None:
    with pytest.raises(InvalidSettingsError, match=f"HEADROOM_FRONTS: Input should be .*{count}"):
        merged([from_environment({"HEADROOM_FRONTS": count})])
    assert merged([]).fronts == 0
