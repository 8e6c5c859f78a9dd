"""The console over HTTP: authorization, pages, and content policy."""

from __future__ import annotations

import asyncio
import time

import pytest

from console.web_world import served
from headroom.console.access import AccessRequest, LoopbackOnly
from headroom.console.read_model import ReadModel
from support.console_world import bystander
from support.service_world import body

pytestmark = pytest.mark.clock


@pytest.mark.parametrize(
    ("path", "kind", "holds"),
    [
        ("/", "text/html", "demo"),
        ("/?q=none", "text/html", "No service matches"),
        ("/services/vision/demo", "text/html", "What if"),
        ("/services/vision/demo?ceiling=0.5", "text/html", "your values: ceiling 50"),
        ("/api/services", "application/json", '"name": "demo"'),
        ("/api/services/vision/demo", "application/json", '"state": "Healthy"'),
        ("/static/console.css", "text/css", "prefers-color-scheme: dark"),
        ("/static/console.js", "text/javascript", "use strict"),
    ],
)
async def test_pages_are_served(path: str, kind: str, holds: str) -> None:
    async with served() as client:
        answer = await client.get(path)
        assert answer.status == 200
        assert answer.content_type == kind
        assert holds in await answer.text()


@pytest.mark.parametrize(
    "path", ["/services/vision/nobody", "/static/../web.py", "/static/web.py", "/metrics", "/x"]
)
async def test_missing_page_says_so(path: str) -> None:
    async with served() as client:
        answer = await client.get(path)
        assert answer.status == 404
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")


async def test_clients_that_ask_for_many_pages_leave_the_loop_to_evaluations() -> None:
    """32 connections, each with the next request at once, held up every step of others by 0.9 s."""
    async with served() as client:

        async def ask() -> None:
            while True:
                await (await client.get("/services/vision/demo")).read()

        asking = [asyncio.create_task(ask()) for _ in range(32)]
        await asyncio.sleep(1.0)  # the burst at the beginning
        begun_s = time.thread_time()  # a machine that pauses adds seconds to the clock
        for _ in range(20):
            await asyncio.sleep(0.001)
        took_s = time.thread_time() - begun_s
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    assert took_s < 4.0


@pytest.mark.parametrize("method", ["post", "put", "delete", "patch"])
async def test_write_methods_are_rejected(method: str) -> None:
    async with served() as client:
        assert (await client.request(method, "/")).status == 405


async def test_page_runs_only_the_console_script() -> None:
    async with served() as client:
        answer = await client.get("/")
        policy = answer.headers["Content-Security-Policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        page = await answer.text()
        assert "http://" not in page
        assert "https://" not in page


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8081", 200),
        ("127.0.0.1", 200),
        ("[::1]:8081", 200),
        ("evil.example", 421),
        ("localhost.evil.example:8081", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
    ],
)
async def test_loopback_console_rejects_other_host_names(host: str, status: int) -> None:
    verdict = await LoopbackOnly().judge(AccessRequest(host=host, authorization="", namespace=None))
    assert verdict.status == status


PATHS = (
    "spec",
    "status",
    "spec__accelerator",
    "spec__accelerator__count",
    "spec__accelerator__resource",
    "spec__slo",
    "spec__slo__utilizationCeiling",
    "spec__slo__latency",
    "spec__slo__latency__target",
    "spec__slo__latency__percentile",
    "spec__scaling",
    "spec__scaling__minReplicas",
    "spec__scaling__maxReplicas",
    "spec__scaling__mode",
    "spec__targetRef",
    "spec__runtime__podTemplate",
    "status__replicas",
    "status__decision",
)
WRONG = ("many", 1.5, -1, 10**30, [1], {"a": {"b": "c"}}, True, "")


async def test_list_survives_an_object_with_a_field_of_any_type() -> None:
    objects = [
        body(**{path: value}) | {"metadata": body()["metadata"] | {"uid": f"{path}-{number}"}}
        for path in PATHS
        for number, value in enumerate(WRONG)
    ]
    model = ReadModel(lambda: [*objects, bystander(1)])
    async with served(model=model) as client:
        for path in ("/", "/api/services", "/?sort=accelerators", "/services/vision/resnet50"):
            answer = await client.get(path)
            assert answer.status == 200, path
            assert "resnet50" in await answer.text()
