"""Every connection that a gateway admits, at its worst cost, in a memory cgroup of shipped size."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest
import yaml

from fakes_gateway import Gateway, Replica, gateway, ok, service, until
from headroom.gateway import Route
from headroom.gateway.bounds import BUFFERED_BYTES, MAX_CONNECTIONS, SERVICE_CONNECTIONS
from reliability.attacks import hostile_client
from reliability.memory_cgroup import memory_cgroup

pytestmark = pytest.mark.clock

ROOT = Path(__file__).parents[2]
WORST_SEGMENT = 520
"""More than the 512 bytes up to which Envoy copies a segment behind the last one."""
PATIENCE_S = 240.0
UNFINISHED = BUFFERED_BYTES - 1
KERNEL_BYTES = 2 * 2 * (16 << 10)
"""Receive and send buffers, doubled by the kernel; a cgroup of version 1 does not count them."""


def shipped_bytes() -> int:
    """Return the memory limit of the container `envoy`."""
    manifest = ROOT / "deploy" / "components" / "gateway" / "gateway.yaml"
    (limit,) = (
        container["resources"]["limits"]["memory"]
        for one in yaml.safe_load_all(manifest.read_text())
        if one["kind"] == "Deployment"
        for container in one["spec"]["template"]["spec"]["containers"]
        if container["name"] == "envoy"
    )
    assert limit.endswith("Gi")
    return int(limit.removesuffix("Gi")) << 30


@contextmanager
def attacking(one: Route, count: int, said: Path) -> Iterator[None]:
    """Hold so many unfinished uploads open."""
    head = f"POST / HTTP/1.1\\r\\nhost: a\\r\\ncontent-length: {BUFFERED_BYTES}\\r\\n\\r\\n"
    words = [sys.executable, "-m", hostile_client.__name__, str(one.port), "--head", head]
    words += ["--count", str(count), "--body", str(UNFINISHED), "--segment", str(WORST_SEGMENT)]
    words += ["--gap", "0.3", "--seconds", "600", "--again"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "e2e")}
    with said.open("wb") as lines:
        attacker = subprocess.Popen(words, stdout=lines, env=environment)
    try:
        yield
    finally:
        attacker.kill()
        attacker.wait()


def sent(said: Path) -> int:
    """Return how many connections of an attacker have sent all they will."""
    lines = said.read_text().splitlines()
    last = json.loads(lines[-1]) if lines else {}
    sent: int = last.get("sent", 0)
    return sent


async def held(front: Gateway, one: Route) -> int:
    """Return the connections that the gateway holds of a service."""
    name = f"http.{one.key}.downstream_cx_active"
    admin = f"http://127.0.0.1:{front.admin_port}/stats?filter={name}"
    async with front.client.get(admin) as page:
        return int((await page.text()).rpartition(":")[2])


def ask(kept: HTTPConnection) -> int:
    """Send a request over a connection that was open before."""
    kept.request("POST", "/", body=b"x")
    answered = kept.getresponse()
    answered.read()
    return answered.status


async def test_all_admitted_connections_at_their_worst_fit_the_shipped_limit(
    tmp_path: Path,
) -> None:
    replica = await Replica(ok).start()
    attacked, other, quiet = (service(name=name) for name in ("attacked", "other", "quiet"))
    hosts = {one.key: [replica.endpoint] for one in (attacked, other, quiet)}
    said = tmp_path / "attacked", tmp_path / "other"
    with memory_cgroup(shipped_bytes()) as limited:
        async with gateway(tmp_path, prefix=limited.prefix) as front:
            await front.tell(attacked, other, quiet, replicas=hosts)
            with (
                closing(HTTPConnection("127.0.0.1", quiet.port, timeout=10.0)) as kept,
                attacking(attacked, SERVICE_CONNECTIONS + 5, said[0]),
                attacking(other, MAX_CONNECTIONS - SERVICE_CONNECTIONS, said[1]),
            ):

                async def full() -> bool:
                    first, second = await held(front, attacked), await held(front, other)
                    return (
                        first >= 0.99 * SERVICE_CONNECTIONS
                        and first + second >= 0.99 * MAX_CONNECTIONS
                        and sent(said[0]) >= 0.95 * SERVICE_CONNECTIONS
                    )

                await asyncio.to_thread(kept.connect)
                await until(full, "all connections are taken, at their worst cost", PATIENCE_S)
                for _ in range(20):
                    assert await asyncio.to_thread(ask, kept) == 200
                resident = limited.peak_bytes(front.process.pid)
            assert front.process.poll() is None
    await replica.stop()
    assert resident + MAX_CONNECTIONS * KERNEL_BYTES <= shipped_bytes(), resident
