"""The watch over real connections: failures, and its return once the API is back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import kopf
import pytest
from aiohttp import web

from headroom.adapters.watches.inference_service_watch import InferenceServiceWatch
from headroom.adapters.watches.kopf_settings import Patience
from support.loopback import on_loopback

pytestmark = pytest.mark.clock

KIND = ("headroom.dev", "v1alpha1", "inferenceservices")
ROOT = "/apis/headroom.dev/v1alpha1/"
QUICK = Patience(shortest_pause_s=0.1, longest_pause_s=0.4, back_offs_s=(0.1, 0.2))
SEEN_WITHIN_S = 20.0
"""Patience after the fault on a busy machine: the longest pause plus kopf's start."""

Fault = Callable[[web.Request], Awaitable[web.StreamResponse]]


def answering(status: int, text: str = "{}") -> Fault:
    async def fault(_: web.Request) -> web.Response:
        return web.Response(status=status, text=text, content_type="application/json")

    return fault


async def an_error_in_the_stream(request: web.Request) -> web.StreamResponse:
    if "watch" not in request.query:
        return web.Response(status=500, text="{}")
    status = {"kind": "Status", "code": 500, "message": "etcd is away"}
    return web.Response(text=json.dumps({"type": "ERROR", "object": status}) + "\n")


async def reset(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


FAULTS = {
    "401": answering(401, '{"kind": "Status", "message": "Unauthorized"}'),
    "403": answering(403, '{"kind": "Status", "message": "forbidden"}'),
    "a login page": answering(200, "<html>sign in</html>"),
    "an error in the stream": an_error_in_the_stream,
    "reset": reset,
}


class FakeApi:
    """Serves one kind: discovery, a list, and an open watch."""

    def __init__(self) -> None:
        self.services: list[dict[str, Any]] = []
        self.fault: Fault | None = None
        self.refused: set[str] = set()
        self.asked: set[str] = set()
        self._streams: set[asyncio.Queue[dict[str, Any] | None]] = set()
        self.url = ""

    def create(self, name: str) -> None:
        metadata = {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": str(101 + len(self.services)),
        }
        service = {
            "apiVersion": "headroom.dev/v1alpha1",
            "kind": "InferenceService",
            "metadata": metadata,
        }
        self.services.append(service)
        for stream in self._streams:
            stream.put_nowait({"type": "ADDED", "object": service})

    def strike(self, fault: Fault) -> None:
        """Fail every request from now on and close open ones."""
        self.fault = fault
        for stream in self._streams:
            stream.put_nowait(None)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.add(request.path)
        if self.fault is not None:
            return await self.fault(request)
        if request.path in self.refused:
            return web.json_response({"kind": "Status", "message": "forbidden"}, status=403)
        if request.path.startswith(ROOT) and request.path.endswith("/inferenceservices"):
            if "watch" in request.query:
                return await self._watch(request)
            metadata = {"resourceVersion": str(100 + len(self.services))}
            return web.json_response({"metadata": metadata, "items": self.services})
        return web.json_response(DISCOVERED.get(request.path, {}))

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        stream: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        for service in self.services[int(request.query["resourceVersion"]) - 100 :]:
            stream.put_nowait({"type": "ADDED", "object": service})
        self._streams.add(stream)
        try:
            while (event := await stream.get()) is not None:
                await response.write(json.dumps(event).encode() + b"\n")
        finally:
            self._streams.discard(stream)
        return response


def group(name: str, version: str) -> dict[str, Any]:
    versions = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [versions], "preferredVersion": versions}


def resource(plural: str, kind: str, *, namespaced: bool = False) -> dict[str, Any]:
    return {
        "name": plural,
        "singularName": kind.lower(),
        "namespaced": namespaced,
        "kind": kind,
        "verbs": ["get", "list", "watch", "patch"],
    }


CRDS = "apiextensions.k8s.io"
DISCOVERED: dict[str, dict[str, Any]] = {  # kopf waits for namespaces and CRDs before it begins
    "/api": {"versions": ["v1"]},
    "/api/v1": {"resources": [resource("namespaces", "Namespace")]},
    "/apis": {"groups": [group("headroom.dev", "v1alpha1"), group(CRDS, "v1")]},
    "/apis/headroom.dev/v1alpha1": {
        "resources": [resource("inferenceservices", "InferenceService", namespaced=True)]
    },
    f"/apis/{CRDS}/v1": {
        "resources": [resource("customresourcedefinitions", "CustomResourceDefinition")]
    },
}


@asynccontextmanager
async def serving() -> AsyncIterator[FakeApi]:
    api = FakeApi()
    async with on_loopback(api.handle) as api.url:
        yield api


class Seen(list[str]):
    def __init__(self) -> None:
        super().__init__()
        self._more = asyncio.Event()

    def take(self, event_type: str | None, service: dict[str, Any]) -> None:
        self.append(service["metadata"]["name"])
        self._more.set()

    async def has(self, name: str) -> None:
        async with asyncio.timeout(SEEN_WITHIN_S):
            while name not in self:
                self._more.clear()
                await self._more.wait()


async def at_once() -> None:
    """Returns at once: the kind is served."""


@asynccontextmanager
async def watching(api: FakeApi) -> AsyncIterator[tuple[InferenceServiceWatch, Seen]]:
    seen = Seen()
    watch = InferenceServiceWatch(
        *KIND, [], login=lambda **_: kopf.ConnectionInfo(server=api.url), patience=QUICK
    )
    task = asyncio.create_task(watch.run(seen.take, at_once))
    try:
        yield watch, seen
        assert not task.done(), "it ends only when cancelled"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def survive(fault: Fault) -> None:
    async with serving() as api, watching(api) as (watch, seen):
        api.create("before")
        await seen.has("before")
        api.strike(fault)
        await asyncio.sleep(0.8)  # longer than kopf's own back-offs: it has given up
        api.create("meanwhile")
        assert "meanwhile" not in seen
        api.fault = None
        await seen.has("meanwhile")
        api.create("after")
        await seen.has("after")
        assert watch.silent_s() < SEEN_WITHIN_S


async def test_watch_resumes_after_any_failure() -> None:
    """Run in parallel: kopf takes 5 s to end."""
    ended = await asyncio.gather(*map(survive, FAULTS.values()), return_exceptions=True)
    assert {name: end for name, end in zip(FAULTS, ended, strict=True) if end} == {}


async def test_failure_that_lasts_is_logged_once_with_its_cause(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ends = asyncio.Semaphore(0)
    async with serving() as api:
        api.strike(FAULTS["401"])
        watch = InferenceServiceWatch(
            *KIND, [], login=lambda **_: kopf.ConnectionInfo(server=api.url), patience=QUICK
        )
        task = asyncio.create_task(watch.run(Seen().take, at_once, ends.release))
        async with asyncio.timeout(2 * SEEN_WITHIN_S):
            for _ in range(2):
                await ends.acquire()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    (said,) = [one.message for one in caplog.records if one.name.startswith("headroom")]
    assert "accepts no credentials of the operator (401)" in said


async def test_namespace_that_cannot_be_read_ends_no_watch_of_another() -> None:
    async with serving() as api:
        api.create("there")
        dark = f"{ROOT}namespaces/dark/inferenceservices"
        api.refused, unlisted, seen, ended = {dark}, {"dark"}, Seen(), list[None]()
        watch = InferenceServiceWatch(
            *KIND,
            ["default", "dark"],
            login=lambda **_: kopf.ConnectionInfo(server=api.url),
            patience=QUICK,
            unlisted=lambda: unlisted,
        )
        task = asyncio.create_task(watch.run(seen.take, at_once, lambda: ended.append(None)))
        await seen.has("there")
        await asyncio.sleep(0.8)  # longer than kopf's own back-offs
        api.create("after")
        await seen.has("after")
        assert (ended, dark in api.asked) == ([], False)

        api.refused.clear()
        unlisted.clear()
        async with asyncio.timeout(SEEN_WITHIN_S):
            while dark not in api.asked:  # noqa: ASYNC110  (nothing announces it)
                await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_watch_waits_until_the_kind_is_served() -> None:
    served = asyncio.Event()
    async with serving() as api:
        api.create("there")
        seen = Seen()
        watch = InferenceServiceWatch(
            *KIND, [], login=lambda **_: kopf.ConnectionInfo(server=api.url), patience=QUICK
        )
        task = asyncio.create_task(watch.run(seen.take, served.wait))
        await asyncio.sleep(0.2)
        assert (list(seen), watch.silent_s()) == ([], 0.0)
        served.set()
        await seen.has("there")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert watch.silent_s() == 0.0
