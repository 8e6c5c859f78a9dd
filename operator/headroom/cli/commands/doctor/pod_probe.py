"""Reads one pod's metrics through the API server, and classifies the answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import orjson
from pydantic import ValidationError

from headroom.api.service_spec.runtime import DEFAULT_PORT, Runtime
from headroom.cli.commands.doctor.facts import Answered, Manifest
from headroom.errors import AnswerTooLarge, Forbidden, Unavailable
from headroom.profiles import PROFILES
from headroom.resources.object_conditions import is_true

_NAME = re.compile(rb"^([a-zA-Z_:][a-zA-Z0-9_:]*)", re.MULTILINE)
How = Answered.How
_UNREACHED = "error trying to reach service"
_CLOSED = ("EOF", "connection reset by peer")
"""Text with which the API server reports that a pod closed the connection, Kubernetes 1.30 to
1.36."""
MOST_PORTS = 4


class Fetched(Protocol):
    """An HTTP answer."""

    @property
    def status(self) -> int:
        """Return the HTTP status."""
        ...

    @property
    def body(self) -> bytes:
        """Return the body."""
        ...

    @property
    def date(self) -> str:
        """Return the Date header; may be empty."""
        ...


class Reader(Protocol):
    """The API server, read-only except for access reviews, which change nothing."""

    async def get(
        self, api_version: str, kind: str, namespace: str | None, name: str
    ) -> dict[str, Any]:
        """Read one object; raise NotFound if it does not exist."""
        ...

    async def list_all(
        self, api_version: str, kind: str, namespace: str | None, label_selector: str = ""
    ) -> list[dict[str, Any]]:
        """Read all objects of a kind."""
        ...

    async def create(self, manifest: dict[str, Any], *, field_manager: str) -> dict[str, Any]:
        """POST an access review."""
        ...

    async def fetch(self, path: str) -> Fetched:
        """GET any path."""
        ...


async def ask_pod(
    api: Reader, service: Manifest, pods: Sequence[dict[str, Any]]
) -> Answered | None:
    """Ask the first ready pod, else the first running one; None if none runs.

    Raises Forbidden if the user may not use pods/proxy.
    """
    running = [one for one in pods if one.get("status", {}).get("phase") == "Running"]
    if not running:
        return None
    pod = next((one for one in running if is_true(one, "Ready")), running[0])
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    port, path, own_port = scraped(service)
    at = f"/api/v1/namespaces/{namespace}/pods/{name}:"
    status, body = await _through(api, f"{at}{port}/proxy{path}")
    how, detail = judged(status, body)
    answered = Answered(
        how=how,
        pod=name,
        port=port,
        path=path,
        container=_declarer(pod, port),
        ready=is_true(pod, "Ready"),
        detail=detail,
        names=metric_names(body) if how is How.PAGE else frozenset(),
        declared=_declared(pod),
        own_port=own_port,
    )
    return await _with_elsewhere(api, at, answered) if how is How.REFUSED else answered


async def _through(api: Reader, path: str) -> tuple[int, bytes]:
    """Return status and body; 504 where the API server waits longer for the pod than this does."""
    try:
        found = await api.fetch(path)
    except AnswerTooLarge:
        raise
    except Unavailable:
        return 504, b""
    return found.status, found.body


async def _with_elsewhere(api: Reader, at: str, answered: Answered) -> Answered:
    """Ask the ports that the pod declares, and add the first that has metrics."""
    others = [port for port in answered.declared if port != answered.port]
    for port in others[:MOST_PORTS]:
        status, body = await _through(api, f"{at}{port}/proxy/metrics")
        if status == 200 and (names := metric_names(body)):
            return replace(answered, elsewhere=port, elsewhere_names=names)
    return answered


def scraped(service: Manifest) -> tuple[int, str, bool]:
    """Return port and path of the metrics that the operator reads, and whether the port is theirs.

    For an invalid spec, which another check reports, those of the default profile.
    """
    try:
        runtime = Runtime.model_validate(service["spec"].get("runtime") or {})
    except ValidationError:
        return DEFAULT_PORT, PROFILES["headroom"].metrics_path, False
    port = runtime.scrape_port(runtime.port)
    return port, runtime.server.metrics_path, port != runtime.port


def judged(status: int, body: bytes) -> tuple[Answered.How, str]:
    """Classify an answer, of the pod or of the API server about reaching it.

    Raises Forbidden if the API server denies access.
    """
    status_object = _api_status(body)
    message = status_object.get("message", "") or body[:120].decode("utf-8", "replace").strip()
    if status == 200:
        return How.PAGE, ""
    if status_object.get("reason") == "Forbidden" and "pods/proxy" in message:
        raise Forbidden(message)
    if "connection refused" in message:
        return How.REFUSED, "connection refused"
    if status >= 500 and message.startswith(_UNREACHED) and message.endswith(_CLOSED):
        return How.CLOSED, "the connection was closed without an answer"
    if status == 504 or any(word in message for word in ("i/o timeout", "deadline exceeded")):
        return How.SILENT, "no answer in time"
    if status in (404, 405):
        return How.NOT_THERE, f"it answers {status}"
    return How.OTHER, f"it answers {status}: {message}" if message else f"it answers {status}"


def metric_names(page: bytes) -> frozenset[str]:
    """Return the names on a page of metrics in Prometheus' or OpenMetrics' text format."""
    return frozenset(name.decode() for name in _NAME.findall(page))


def _api_status(body: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) and found.get("kind") == "Status" else {}


def _declared(pod: dict[str, Any]) -> tuple[int, ...]:
    return tuple(port for _, port in _ports(pod))


def _declarer(pod: dict[str, Any], port: int) -> str:
    """Name the container that declares a port; empty if none does."""
    return next((name for name, declared in _ports(pod) if declared == port), "")


def _ports(pod: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for one in pod.get("spec", {}).get("containers") or ():
        for port in one.get("ports") or ():
            yield one.get("name", ""), port["containerPort"]
