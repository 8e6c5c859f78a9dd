"""A model server of a third party: batches, sleeps as long as a device would compute, counts.

It runs from a ConfigMap in any Python image, and needs nothing but Python. A batch of b requests
takes FIXED_COST_S + b PER_ITEM_COST_S; its queue has no bound; before it listens
it loads for LOAD_S. Connections are kept alive until the client closes them, unless
CONNECTION_REQUESTS says after how many requests the server does.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass, field

BOUNDS_S = (0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1, 1.5, 2.5, 5, 10, 20, 40)
"""Bounds of the latency histogram; the last bucket is open."""
OVERSLEPT_CAP_S = 0.005
DRAIN_S = 5.0


def number(name: str, default: str) -> float:
    """Read a setting."""
    return float(os.environ.get(name, default))


@dataclass
class Counts:
    """Counts of the metrics page."""

    waiting: int = 0
    running: int = 0
    arrived: int = 0
    batches: int = 0
    batch_requests: int = 0
    batch_s: float = 0.0
    connections: int = 0
    retries: int = 0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    latency_s: float = 0.0

    def answered(self, latency_s: float) -> None:
        """Count an answer."""
        self.buckets[bisect_left(BOUNDS_S, latency_s)] += 1
        self.latency_s += latency_s

    def page(self) -> str:
        """Return the metrics in Prometheus' text format."""
        lines = [
            f"sleeping_requests_waiting {self.waiting}",
            f"sleeping_requests_running {self.running}",
            f"sleeping_requests_total {self.arrived}",
            f"sleeping_retries_total {self.retries}",
            f"sleeping_batches_total {self.batches}",
            f"sleeping_batch_requests_total {self.batch_requests}",
            f"sleeping_batch_seconds_total {self.batch_s:.6f}",
            f"sleeping_connections_total {self.connections}",
        ]
        total = 0
        for bound, count in zip([*map(str, BOUNDS_S), "+Inf"], self.buckets, strict=True):
            total += count
            lines.append(f'sleeping_request_seconds_bucket{{le="{bound}"}} {total}')
        lines += [
            f"sleeping_request_seconds_sum {self.latency_s:.6f}",
            f"sleeping_request_seconds_count {total}",
        ]
        return "\n".join([*lines, ""])


class Device:
    """Takes the oldest requests that wait, as many as fit, and answers them after the batch."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._queue: deque[tuple[float, asyncio.Future[None]]] = deque()
        self._some = asyncio.Event()
        self._fixed_s = number("FIXED_COST_S", "0.02")
        self._per_item_s = number("PER_ITEM_COST_S", "0.01")
        self._max_batch = int(number("MAX_BATCH_SIZE", "8"))

    def add(self) -> asyncio.Future[None]:
        """Queue one request; the future is done when its batch is."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((time.monotonic(), done))
        self._counts.arrived += 1
        self._counts.waiting += 1
        self._some.set()
        return done

    async def run(self) -> None:
        """Execute batches indefinitely."""
        overslept_s = 0.0
        while True:
            await self._some.wait()
            batch = [self._queue.popleft() for _ in range(min(self._max_batch, len(self._queue)))]
            if not self._queue:
                self._some.clear()
            size = len(batch)
            self._counts.waiting -= size
            self._counts.running = size
            cost_s = self._fixed_s + size * self._per_item_s
            began_s = time.monotonic()
            await asyncio.sleep(max(0.0, cost_s - overslept_s))
            ended_s = time.monotonic()
            overslept_s = min(max(0.0, ended_s - began_s - cost_s + overslept_s), OVERSLEPT_CAP_S)
            self._counts.running = 0
            self._counts.batches += 1
            self._counts.batch_requests += size
            self._counts.batch_s += ended_s - began_s
            for arrived_s, done in batch:
                self._counts.answered(ended_s - arrived_s)
                done.set_result(None)


class Server:
    """HTTP/1.1 with keep-alive: inference, metadata, metrics."""

    def __init__(self, connection_requests: int = 0) -> None:
        self.counts = Counts()
        self.device = Device(self.counts)
        self.draining = False
        self._each = connection_requests

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.counts.connections += 1
        served = 0
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                line, *fields = head.split("\r\n")
                headers = {
                    name.lower(): value
                    for name, _, value in (each.partition(": ") for each in fields)
                }
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                status, kind, content = await self._answer(line.split()[1], headers, body)
                served += 1
                last = (
                    served == self._each
                    or self.draining
                    or headers.get("connection", "").lower() == "close"
                )
                writer.write(
                    f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n"
                    f"content-length: {len(content)}\r\n"
                    f"connection: {'close' if last else 'keep-alive'}\r\n\r\n".encode()
                    + content
                )
                await writer.drain()
                if last:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    async def _answer(
        self, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[str, str, bytes]:
        if path.endswith("/infer"):
            self.counts.retries += headers.get("x-stainless-retry-count", "0") != "0"
            row = json.loads(body)["inputs"][0]["data"]
            await self.device.add()
            answer = {"outputs": [{"name": "sum", "data": [sum(row)]}]}
            return "200 OK", "application/json", json.dumps(answer).encode()
        if path == "/metrics":
            return "200 OK", "text/plain; version=0.0.4", self.counts.page().encode()
        if path.startswith("/v2/models/"):
            described = {"inputs": [{"name": "x", "datatype": "FP64", "shape": [-1, 4]}]}
            return "200 OK", "application/json", json.dumps(described).encode()
        return ("200 OK" if path == "/" else "404 Not Found"), "text/plain", b""


async def main() -> None:
    """Load, then serve until a signal to end."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    await asyncio.sleep(number("LOAD_S", "10"))
    server = Server(int(number("CONNECTION_REQUESTS", "0")))
    device = asyncio.create_task(server.device.run())
    listening = await asyncio.start_server(server.connected, "0.0.0.0", 8000, backlog=4096)
    await ended.wait()
    # A client that still comes is served, and asked to come back on another connection.
    server.draining = True
    await asyncio.sleep(DRAIN_S)
    listening.close()
    device.cancel()


if __name__ == "__main__":
    asyncio.run(main())
