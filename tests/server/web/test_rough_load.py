"""Many bad and impatient clients at once against a server process: every request in one place."""

from __future__ import annotations

import asyncio
import random
import re
import socket
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from support.server_process import Server, serving

pytestmark = pytest.mark.clock

PREDICT = b"/v1/models/m:predict"
ROW = b'{"instances":[[1,2,3,4]]}'
MAX_BODY_BYTES = 4096


def post(body: bytes) -> bytes:
    head = b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n"
    return head % (PREDICT, len(body)) + body


async def counters(server: Server) -> Counter[str]:
    """Return the counters by name, with the value of the last label other than the model's."""
    async with httpx.AsyncClient(base_url=server.url) as http:
        text = (await http.get("/metrics")).text
    found: Counter[str] = Counter()
    for name, labels, value in re.findall(r"^headroom_(\w+)\{(.*)\} (\S+)$", text, re.MULTILINE):
        key = re.sub(r'(?:,|^)model="m"', "", labels)
        found[name + re.sub(r'.*="(\w+)"', r" \1", key)] = float(value)  # type: ignore[assignment]
    return found


def balanced(seen: Counter[str]) -> None:
    ended = sum(value for name, value in seen.items() if name.startswith("requests_total "))
    in_flight = seen["requests_waiting"] + seen["requests_running"]
    assert seen["requests_received_total"] == ended + in_flight


async def settled(server: Server) -> Counter[str]:
    """Once nothing is in flight."""
    async with asyncio.timeout(10):
        while True:
            seen = await counters(server)
            balanced(seen)
            if seen["requests_waiting"] == seen["requests_running"] == 0:
                return seen
            await asyncio.sleep(0.05)


async def test_disconnected_clients_cost_no_later_batches() -> None:
    clients, batch_s = 1000, 1.5
    async with serving(
        EMULATED_FIXED_COST_S=batch_s,
        EMULATED_PER_ITEM_COST_S=0,
        MAX_BATCH_SIZE=1,
        MAX_WAITING=2 * clients,
        WARMUP_MAX_LATENCY_S=10,
    ) as server:
        await server.ready()
        before = await counters(server)
        address = ("127.0.0.1", int(server.url.rpartition(":")[2]))

        def send_and_leave() -> None:
            for _ in range(clients // 100):
                crowd = [socket.create_connection(address) for _ in range(100)]
                for one in crowd:
                    one.sendall(post(ROW))
                for one in crowd:
                    one.close()

        async with httpx.AsyncClient(base_url=server.url) as http:
            occupant = asyncio.create_task(http.post(PREDICT.decode(), content=ROW))
            await server.shows("requests_running", 1)
            await asyncio.to_thread(send_and_leave)
            assert (await occupant).json() == {"predictions": [10.0]}
        seen = await settled(server)
        seen.subtract(before)
    ran = seen["execution_duration_seconds_count"] - 1
    assert seen["requests_received_total"] == 1 + clients
    assert seen["requests_total ok"] + seen["requests_total cancelled"] == 1 + clients
    assert seen["requests_total cancelled"] >= clients - ran
    # one may have been sealed while its client was leaving
    assert ran <= 1
    assert seen["device_busy_seconds_total"] == pytest.approx((1 + ran) * batch_s, rel=0.1)


async def test_signal_answers_requests_in_flight_and_ends_readiness() -> None:
    async with serving(
        EMULATED_FIXED_COST_S=0.3, EMULATED_PER_ITEM_COST_S=0, MAX_BATCH_SIZE=4
    ) as server:
        await server.ready()
        connections = httpx.Limits(max_connections=32)
        async with httpx.AsyncClient(base_url=server.url, limits=connections) as http:
            asked = [
                asyncio.create_task(http.post(PREDICT.decode(), content=ROW)) for _ in range(16)
            ]
            await server.shows("requests_received_total", 16)
            assert not all(one.done() for one in asked)
            server.process.terminate()
            async with asyncio.timeout(10):
                while (await http.get("/v2/health/ready")).status_code == 200:
                    assert not all(one.done() for one in asked)
            assert (await http.get("/v2/health/ready")).status_code == 503
            answers = await asyncio.gather(*asked)
            assert [one.json() for one in answers] == [{"predictions": [10.0]}] * 16
        assert await asyncio.wait_for(server.process.wait(), 10) == 0


class Rough:
    """Clients of which one in a hundred each sends garbage, disconnects, or sends too much."""

    KINDS = ("good", "malformed", "abandoned", "oversized")
    WEIGHTS = (97, 1, 1, 1)

    def __init__(self, server: Server, seed: int) -> None:
        self.sent: Counter[str] = Counter()
        self.wrong: list[bytes] = []
        self._port = int(server.url.rpartition(":")[2])
        self._chance = random.Random(seed)

    async def client(self, until_s: float, pause_s: float) -> None:
        reader = writer = None
        while time.monotonic() < until_s:
            if writer is None:
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            assert reader is not None
            (kind,) = self._chance.choices(self.KINDS, self.WEIGHTS)
            self.sent[kind] += 1
            if not await self._one(kind, reader, writer):
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()
                writer = None
            await asyncio.sleep(self._chance.expovariate(1 / pause_s))
        if writer is not None:
            writer.close()

    async def _one(
        self, kind: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Return whether the connection can be used again."""
        bodies = {"malformed": ROW[:-2], "oversized": b" " * (MAX_BODY_BYTES + 1)}
        status = {"malformed": b"400", "oversized": b"413"}.get(kind, b"200")
        writer.write(post(bodies.get(kind, ROW)))
        await writer.drain()
        if kind == "abandoned":
            await asyncio.sleep(0.002)
            return False
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
        found = re.search(rb"content-length: (\d+)", head)
        body = await reader.readexactly(int(found[1]) if found else 0)
        if head[9:12] != status or (kind == "good" and body != b'{"predictions":[10.0]}'):
            self.wrong.append(head + body)
        return b"connection: close" not in head


def rss_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


async def test_rough_clients_are_counted_once_and_leak_no_memory() -> None:
    lasts_s, workers, pause_s = 4.0, 16, 0.02
    settings = {"EMULATED_FIXED_COST_S": 0.003, "MAX_BODY_BYTES": MAX_BODY_BYTES}
    async with serving(**settings) as server:
        await server.ready()
        rough = Rough(server, seed=7)
        end_s = time.monotonic() + lasts_s
        crowd = [asyncio.create_task(rough.client(end_s, pause_s)) for _ in range(workers)]
        resident: list[float] = []
        while time.monotonic() < end_s:
            await asyncio.sleep(lasts_s / 10)
            resident.append(rss_mb(server.process.pid))
            balanced(await counters(server))
        await asyncio.gather(*crowd)
        seen = await settled(server)
    assert rough.wrong == []
    assert min(rough.sent[kind] for kind in Rough.KINDS) >= 3, rough.sent
    served = rough.sent["good"] + rough.sent["abandoned"]
    assert seen["requests_received_total"] == served
    assert seen["requests_total ok"] + seen["requests_total cancelled"] == served
    assert seen["requests_total cancelled"] <= rough.sent["abandoned"]
    assert seen["requests_invalid_total not_json"] == rough.sent["malformed"]
    assert seen["requests_invalid_total too_large"] == rough.sent["oversized"]
    assert resident[-1] - resident[3] < 2.0, resident
