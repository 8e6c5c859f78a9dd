"""Requests through one gateway while replicas start, stop and are killed: processes on loopback.

What the cluster adds, the watch of pods and the kubelet, is measured on a node (`gateway_life.py`).
`python -m bench.gateway.changes PORT` is one replica, which says who it is and when it was asked.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, web

from bench.figures import Figure, at_least, at_most, shown
from bench.gateway.many_services import running_envoy
from bench.gateway.routes import bench_route
from free_ports import free_port
from headroom.adapters.gateways.xds_server import XdsServer
from headroom.gateway import Endpoint, Route, snapshot

REQUESTS = 20_000
RATE_RPS = 260.0
SERVICE_S = 0.02
FEWEST, MOST = 3, 6
BETWEEN_S = 0.7
DRAINED_AFTER_S = 2.0
KILLED_SEEN_AFTER_S = 1.0
"""Time for which a killed replica stays among the published ones."""
CLIENTS = 64


@dataclass(slots=True)
class _Fleet:
    """Replicas in the route, what happened to them, and what the clients saw."""

    xds: XdsServer
    route: Route
    running: dict[int, asyncio.subprocess.Process] = field(default_factory=dict)
    published_s: dict[int, float] = field(default_factory=dict)
    left_s: dict[int, float] = field(default_factory=dict)
    asked_s: dict[int, list[float]] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)

    def publish(self) -> None:
        hosts = [
            Endpoint("127.0.0.1", port) for port in self.published_s if port not in self.left_s
        ]
        self.xds.publish(snapshot([self.route], {self.route.key: hosts}, {}))

    @property
    def published(self) -> list[int]:
        return [port for port in self.published_s if port not in self.left_s]

    async def come(self) -> None:
        port = free_port()
        words = (sys.executable, "-m", "bench.gateway.changes", str(port))
        self.running[port] = await asyncio.create_subprocess_exec(*words)
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
                continue
            writer.close()
            break
        self.published_s[port] = time.time()
        self.publish()
        self.done["came"] += 1

    async def leave(self, port: int) -> None:
        self.left_s[port] = time.time()
        self.publish()
        self.done["left"] += 1
        await asyncio.sleep(DRAINED_AFTER_S)
        self.running[port].send_signal(signal.SIGTERM)

    async def be_killed(self, port: int) -> None:
        self.running[port].kill()
        self.done["were killed"] += 1
        await asyncio.sleep(KILLED_SEEN_AFTER_S)
        self.left_s[port] = float("inf")
        self.publish()


def measure() -> Sequence[Figure]:
    """Send the requests; a minute and a half."""
    return asyncio.run(_measure())


async def _measure() -> list[Figure]:
    route = bench_route(free_port(), "changes", timeout_s=10.0)
    async with running_envoy() as (xds, _, _):
        fleet = _Fleet(xds, route)
        try:
            for _ in range(FEWEST + 1):
                await fleet.come()
            await asyncio.sleep(2.0)
            changing = asyncio.create_task(_change(fleet))
            await _load(fleet)
            changing.cancel()
            await asyncio.gather(changing, return_exceptions=True)
        finally:
            for process in fleet.running.values():
                if process.returncode is None:
                    process.kill()
                await process.wait()
    return _figures(fleet)


async def _change(fleet: _Fleet) -> None:
    """Let one replica after the other come, leave or be killed, until cancelled."""
    chance = random.Random(1)
    async with asyncio.TaskGroup() as changes:
        while True:
            await asyncio.sleep(BETWEEN_S)
            ports = fleet.published
            if len(ports) <= FEWEST or (len(ports) < MOST and chance.random() < 0.5):
                await fleet.come()
            else:
                act = fleet.leave if chance.random() < 0.5 else fleet.be_killed
                changes.create_task(act(chance.choice(ports)))
                await asyncio.sleep(KILLED_SEEN_AFTER_S)


async def _load(fleet: _Fleet) -> None:
    """Send requests at random moments, without waiting for earlier ones."""
    chance, url = random.Random(2), f"http://127.0.0.1:{fleet.route.port}/"
    connector = TCPConnector(limit=CLIENTS)
    async with ClientSession(connector=connector, timeout=ClientTimeout(20)) as client:

        async def one() -> None:
            try:
                async with client.post(url, data=b"x") as answered:
                    text = await answered.text()
                    if answered.status != 200:
                        fleet.said[f"{answered.status} {text[:80]}"] += 1
                        return
            except (ClientError, TimeoutError) as error:
                fleet.said[f"no answer: {type(error).__name__}"] += 1
                return
            port, asked_s = text.split()
            fleet.asked_s.setdefault(int(port), []).append(float(asked_s))

        due_s = time.perf_counter()
        async with asyncio.TaskGroup() as requests:
            for _ in range(REQUESTS):
                due_s += chance.expovariate(RATE_RPS)
                await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
                requests.create_task(one())


def _figures(fleet: _Fleet) -> list[Figure]:
    first = [
        min(fleet.asked_s[port]) - published_s
        for port, published_s in list(fleet.published_s.items())[FEWEST + 1 :]
        if port in fleet.asked_s
    ]
    last = [
        max(0.0, max(fleet.asked_s[port]) - left_s)
        for port, left_s in fleet.left_s.items()
        if port in fleet.asked_s and left_s != float("inf")
    ]
    silent = sum(n for what, n in fleet.said.items() if what.startswith("no answer"))
    said = ", ".join(f"{n}x {what}" for what, n in fleet.said.most_common(3))
    changes = ", ".join(f"{n} {what}" for what, n in fleet.done.items())
    answered = sum(len(times) for times in fleet.asked_s.values())
    return [
        shown("replicas under load", changes),
        at_most(
            "published to first request, slowest", max(first, default=float("nan")), 1.0, " s", 3
        ),
        at_most("removed to last request, slowest", max(last, default=9.0), 1.0, " s", 3),
        at_least(f"requests answered, of {REQUESTS}", answered, REQUESTS, "", 0),
        at_most("  without an answer", silent, 0, "", 0),
        shown("  errors", said or "nothing failed"),
    ]


async def _replica(port: int) -> None:
    """Answer after a while with this replica's name and the time of the request, until stopped."""

    async def answer(request: web.Request) -> web.Response:
        asked_s = time.time()
        await request.read()
        await asyncio.sleep(SERVICE_S)
        return web.Response(text=f"{port} {asked_s}")

    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(_replica(int(sys.argv[1])))
