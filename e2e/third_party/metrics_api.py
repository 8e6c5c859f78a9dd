"""`custom.metrics.k8s.io` for a HorizontalPodAutoscaler: requests in flight, read from the pods.

    python -m third_party.metrics_api PORT CERTIFICATE KEY KUBECONFIG

An adapter to Prometheus would add a scrape's age; this one asks the pods when it is asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
import sys
import urllib.parse
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout, web

from cluster import Node
from cluster.raw import Raw
from third_party import aggregated, workload
from third_party.node_program import node_program

GROUP, VERSION = "custom.metrics.k8s.io", "v1beta2"
IN_FLIGHT = "requests_in_flight"
PORT = 6445
TARGETS = "/targets"
STARTS_WITHIN_S = 30.0
_GAUGES = re.compile(r"^sleeping_requests_(?:waiting|running) (\d+)", re.MULTILINE)
_PODS = f"/apis/{GROUP}/{VERSION}/namespaces/{{namespace}}/pods/{{name}}/{IN_FLIGHT}"


def in_flight(page: str) -> int:
    """Return the requests that wait or run, by the server's metrics page."""
    return sum(map(int, _GAUGES.findall(page)))


def value_of(pod: str, namespace: str, count: int, now: datetime) -> dict[str, Any]:
    """Return one pod's entry of a MetricValueList."""
    return {
        "describedObject": {"kind": "Pod", "namespace": namespace, "name": pod, "apiVersion": "v1"},
        "metric": {"name": IN_FLIGHT},
        "timestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "value": str(count),
    }


def is_scraped(pod: Mapping[str, Any]) -> bool:
    """Return whether the pod has an address and the server's port."""
    ports = [
        port.get("containerPort")
        for one in pod["spec"]["containers"]
        for port in one.get("ports", ())
    ]
    return workload.PORT in ports and bool(pod.get("status", {}).get("podIP"))


def target(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pod as one target of Prometheus."""
    metadata = pod["metadata"]
    return {
        "targets": [f"{pod['status']['podIP']}:{workload.PORT}"],
        "labels": {"namespace": metadata["namespace"], "pod": metadata["name"]},
    }


class Api:
    """Answers discovery, and the question of the HPA controller."""

    def __init__(self, kubeconfig: Path) -> None:
        self._api = Raw(kubeconfig)

    def app(self) -> web.Application:
        """Return the routes."""
        app = web.Application()
        app.router.add_get(f"/apis/{GROUP}/{VERSION}", _discovery)
        app.router.add_get(_PODS, self._pods)
        app.router.add_get(TARGETS, self._targets)
        return app

    async def _targets(self, _: web.Request) -> web.Response:
        """Return the server's pods in the format of Prometheus's HTTP discovery."""
        pods = (await asyncio.to_thread(self._api.ask, "GET", "/api/v1/pods"))["items"]
        return web.json_response([target(pod) for pod in pods if is_scraped(pod)])

    async def _pods(self, request: web.Request) -> web.Response:
        namespace = request.match_info["namespace"]
        selector = urllib.parse.quote(request.query.get("labelSelector", ""))
        path = f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}"
        pods = (await asyncio.to_thread(self._api.ask, "GET", path))["items"]
        async with ClientSession(timeout=ClientTimeout(total=2.0)) as session:
            read = await asyncio.gather(*(_read(session, pod) for pod in pods))
        items = [
            value_of(pod["metadata"]["name"], namespace, count, datetime.now(UTC))
            for pod, count in zip(pods, read, strict=True)
            if count is not None
        ]
        body = {"kind": "MetricValueList", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}}
        return web.json_response({**body, "items": items})


async def _discovery(_: web.Request) -> web.Response:
    resource = {
        "name": f"pods/{IN_FLIGHT}",
        "singularName": "",
        "namespaced": True,
        "kind": "MetricValueList",
        "verbs": ["get"],
    }
    body = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{VERSION}"}
    return web.json_response({**body, "resources": [resource]})


async def _read(session: ClientSession, pod: Mapping[str, Any]) -> int | None:
    """Return a pod's requests; None where it does not answer: it loads, or is gone."""
    address = pod.get("status", {}).get("podIP")
    if not address:
        return None
    try:
        async with session.get(f"http://{address}:{workload.PORT}/metrics") as answer:
            return in_flight(await answer.text())
    except (ClientError, TimeoutError):
        return None


@contextlib.contextmanager
def running(node: Node, scratch: Path) -> Iterator[None]:
    """Serve it on the node until the block ends."""
    aggregated.register(node, GROUP, VERSION, PORT)
    certificate = node.layout.certificates / "api"
    words = [
        *(sys.executable, "-m", "third_party.metrics_api", str(PORT)),
        *(f"{certificate}.crt", f"{certificate}.key", str(node.layout.inside_kubeconfig)),
    ]
    with node_program(node, "metrics-api", words, scratch):
        aggregated.wait(node, GROUP, VERSION, STARTS_WITHIN_S)
        yield


def main() -> None:
    """Serve until ended."""
    port, certificate, key, kubeconfig = sys.argv[1:]
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    app = Api(Path(kubeconfig)).app()
    web.run_app(app, port=int(port), ssl_context=context, access_log=None, print=None)


if __name__ == "__main__":
    main()
