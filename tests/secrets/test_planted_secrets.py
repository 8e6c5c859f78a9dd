"""A planted secret is in no output of the operator, even if its peers repeat it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from typer.testing import CliRunner

from headroom.adapters.api_server.kubernetes_api import KubernetesApi
from headroom.adapters.api_server.kubernetes_connection import KubernetesConnection
from headroom.adapters.pods.pod_scraper import PodScraper
from headroom.adapters.prometheus.prometheus_source import PrometheusSource
from headroom.adapters.redaction import REDACTED
from headroom.adapters.system_clock import SystemClock
from headroom.cli.app import app as command
from headroom.cli.compose.console import serve_console
from headroom.cli.run_options.console import ConsoleChoice
from headroom.cli.run_options.prometheus import prometheus_sources
from headroom.console.read_model import ReadModel
from headroom.controller.connections import Connections
from headroom.controller.controller import Controller
from headroom.controller.gather.metrics.metrics_reader import MetricsReader
from headroom.controller.options import ControllerOptions
from headroom.errors import ClusterError, ScrapeFailed
from headroom.ops.operator_metrics import OperatorMetrics
from support.api_server import ApiServer
from support.loopback import on_loopback
from support.service_world import body

pytestmark = pytest.mark.clock

PASSWORD = "hunter2-planted-in-a-variable"
TOKEN = "planted-token-of-the-operator"
ROOT = "/apis/headroom.dev/v1alpha1"


def planted(name: str, runtime: dict[str, Any]) -> dict[str, Any]:
    made = body()
    made["metadata"] |= {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    made["spec"]["runtime"] = {"image": "registry.example/server:1", **runtime}
    return made


@dataclass
class Echo:
    """An API server that repeats, in every refusal, all that it was sent."""

    status: int
    as_json: bool
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    refusals: int = 0
    done: asyncio.Event = field(default_factory=asyncio.Event)
    """Everything was refused, and every service says something."""

    def __post_init__(self) -> None:
        variable = [{"name": "DATABASE", "value": PASSWORD}]
        container = {"name": "server", "env": variable}
        secrets = [{"name": "registry"}]
        template = {"spec": {"imagePullSecrets": secrets, "containers": [container]}}
        for one in (
            planted("sound", {"env": variable}),
            planted("overlaid", {"podTemplate": template}),
            planted("invalid", {"env": variable[0]}),
            planted(
                "both",
                {"env": [variable[0] | {"valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}]},
            ),
        ):
            self.objects[one["metadata"]["name"]] = one

    async def handle(self, request: web.Request) -> web.Response:
        sent = await request.text()
        if request.path == f"{ROOT}/inferenceservices":
            metadata = {"resourceVersion": "1"}
            return web.json_response({"metadata": metadata, "items": [*self.objects.values()]})
        if request.path.endswith("/status") and request.method == "PATCH":
            self.said.append(sent)
            one = self.objects[request.path.split("/")[-2]]
            one["status"] = json.loads(sent)["status"]
            if self.refusals >= 2 and all("status" in one for one in self.objects.values()):
                self.done.set()
            return web.json_response(one)
        if request.path.endswith("/events"):
            self.said.append(sent)
            return web.json_response({}, status=201)
        if request.method == "GET" and not request.path.endswith(("/deployments", "/pods")):
            return web.json_response({"message": "not found"}, status=404)
        if request.method == "GET":
            return web.json_response({"items": []})
        self.refusals += 1
        headers = "; ".join(f"{key}: {value}" for key, value in request.headers.items())
        text = f"refused: {headers}; {sent}"
        if self.as_json:
            said = {"kind": "Status", "message": text}
            return web.json_response(said, status=self.status)
        return web.Response(text=f"<html>{text}</html>", status=self.status)


@pytest.mark.parametrize(
    ("status", "as_json"),
    [(422, True), (403, True), (403, False), (409, True), (500, False), (503, True)],
)
async def test_secret_is_in_no_log_event_status_metric_or_page(
    status: int,
    as_json: bool,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    unused_tcp_port: int,
) -> None:
    caplog.set_level("DEBUG", logger="headroom")
    server, instruments, clock = Echo(status, as_json), OperatorMetrics(), SystemClock()
    async with on_loopback(server.handle) as url:
        path = kubeconfig(url, tmp_path)
        async with (
            KubernetesApi(KubernetesConnection(on_call=instruments.called, kubeconfig=path)) as api,
            PodScraper() as scraper,
        ):
            metrics = MetricsReader(scraper, clock, {})
            controller = Controller(
                Connections(cluster=api, metrics=metrics, clock=clock, recorder=instruments),
                ControllerOptions(instance="operator-0", tick_s=0.2),
            )
            model = ReadModel(controller.cache.objects)
            choice = ConsoleChoice(port=unused_tcp_port)
            tasks = [
                asyncio.create_task(controller.run()),
                asyncio.create_task(serve_console(choice, model, api, clock.now_s)),
            ]
            async with asyncio.timeout(60.0):
                await server.done.wait()
            pages = [await page(f"http://127.0.0.1:{unused_tcp_port}{where}") for where in PAGES]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    everything = "\n".join([*server.said, *pages, caplog.text, instruments.page().decode()])
    assert "InvalidSpec" in everything
    assert PASSWORD not in everything
    assert TOKEN not in everything
    assert REDACTED in everything, "or nothing was repeated, and nothing is shown by this test"


PAGES = ("/", "/services/vision/sound", "/services/vision/invalid", "/api/services")


def kubeconfig(url: str, folder: Path, **change: Any) -> str:
    path = Path(ApiServer(url=url).kubeconfig(folder / "config"))
    config = json.loads(path.read_text().replace('"secret"', f'"{TOKEN}"'))
    path.write_text(json.dumps(config | change))
    return str(path)


async def page(url: str) -> str:
    async with asyncio.timeout(20.0), aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(url) as answer:
                    return await answer.text()
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.02)


async def test_what_a_prometheus_repeats_is_in_no_exception() -> None:
    async def handle(request: web.Request) -> web.Response:
        said = {"status": "error", "error": f"Authorization: Bearer {TOKEN}; password={PASSWORD}"}
        return web.json_response(said, status=400)

    async with on_loopback(handle) as url, PrometheusSource("main", [url]) as source:
        with pytest.raises(ScrapeFailed) as refused:
            await source.pages(frozenset({"up"}), "vision", ["a"], 10.0)
    assert REDACTED in str(refused.value)
    assert TOKEN not in str(refused.value)
    assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize(
    "given",
    [
        f"http://reader:{PASSWORD}@prometheus:9090",
        f"main=ftp://reader:{PASSWORD}@prometheus",
        f"main=http://reader:{PASSWORD}@prometheus:9090",
        f"main=http://prometheus:9090?password={PASSWORD}",
    ],
)
def test_a_refused_url_of_a_prometheus_is_said_without_its_password(given: str) -> None:
    with pytest.raises(ValueError, match="Prometheus") as refused:
        prometheus_sources([given])
    assert PASSWORD not in str(refused.value)
    ended = CliRunner().invoke(command, ["run", "--prometheus", given])
    assert ended.exit_code == 2
    assert PASSWORD not in ended.output


@pytest.mark.parametrize(
    "change",
    [{"current-context": "gone"}, {"clusters": []}, {"users": [{"user": {"token": TOKEN}}]}],
    ids=["no context", "no cluster", "no user"],
)
async def test_a_broken_kubeconfig_is_said_without_its_token(
    change: dict[str, Any], tmp_path: Path
) -> None:
    path = kubeconfig("http://127.0.0.1:1", tmp_path, **change)
    with pytest.raises(ClusterError) as refused:
        async with KubernetesApi(
            KubernetesConnection(on_call=OperatorMetrics().called, kubeconfig=path)
        ):
            pass
    assert TOKEN not in str(refused.value)
