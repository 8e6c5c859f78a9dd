"""A pod above the bound of an answer costs no other pod: any tenant can make one.

The API server stores a pod of up to 1.5 MB and writes `<` as `\\u003c`, so that it answers with six
times as much.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from aiohttp import web

from headroom.adapters.api_server.kubernetes_api import KubernetesApi
from headroom.adapters.api_server.kubernetes_connection import MAX_ANSWER_BYTES
from headroom.adapters.watches.pod_watch import PodWatch
from support.answering import Answering

pytestmark = pytest.mark.clock

LARGE = rf'{{"metadata":{{"name":"large"}},"args":"{r"<" * (MAX_ANSWER_BYTES // 5)}"}}'.replace(
    "<", r"\u003c"
).encode()


def small(name: str) -> bytes:
    return orjson.dumps({"metadata": {"name": name, "uid": name}})


class Pods:
    """An API server with these pods, and these events of a watch."""

    def __init__(self, pods: Sequence[bytes], events: Sequence[bytes] = ()) -> None:
        self.pods, self.events = pods, events
        self.requests = 0

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            response = web.StreamResponse()
            await response.prepare(request)
            for event in self.events:
                await response.write(b'{"type":"ADDED","object":' + event + b"}\n")
            await asyncio.sleep(60)
            return response
        self.requests += 1
        first, limit = int(request.query.get("continue", "0")), int(request.query["limit"])
        last = min(len(self.pods), first + limit)
        more = b',"continue":"%d"' % last if last < len(self.pods) else b""
        head = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"%b},' % more
        body = head + b'"items":[' + b",".join(self.pods[first:last]) + b"]}\n"
        return web.Response(body=body, content_type="application/json")


async def listed(api: KubernetesApi, events: int = 0) -> list[str]:
    """Return the names of the pods that a watch lists, and of its first events."""
    names = asyncio.Queue[list[str]]()

    def name(pod: dict[str, Any]) -> str:
        return str(pod["metadata"]["name"])

    running = asyncio.create_task(
        PodWatch(api, selector="a=b").run(
            lambda pods: names.put_nowait([*map(name, pods)]),
            lambda _, pod: names.put_nowait([name(pod)]),
        )
    )
    try:
        async with asyncio.timeout(20):
            return [one for _ in range(1 + events) for one in await names.get()]
    finally:
        running.cancel()


@pytest.mark.parametrize("at", [0, 60, 99], ids=["first", "in between", "last"])
async def test_others_are_listed_without_it(api: KubernetesApi, server: Answering, at: int) -> None:
    names = [f"p{number}" for number in range(99)]
    pods = [*map(small, names)]
    server.answer = answer = Pods([*pods[:at], LARGE, *pods[at:]])
    assert await listed(api) == names
    assert answer.requests < 30


async def test_events_of_others_are_seen_without_it(api: KubernetesApi, server: Answering) -> None:
    server.answer = Pods([small("a")], [small("b"), LARGE, small("c"), LARGE, LARGE, small("d")])
    assert await listed(api, events=3) == ["a", "b", "c", "d"]
