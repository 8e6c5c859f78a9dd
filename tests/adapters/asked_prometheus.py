"""Asks a Prometheus on loopback for pages, for tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headroom.adapters.prometheus.prometheus_source import PrometheusSource
from headroom.telemetry.prometheus_pages import ScrapedPage

pytestmark = pytest.mark.clock

DEADLINE_S = 0.4
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answered(*series: tuple[str, str, float, str], **more: Any) -> str:
    result = [
        {"metric": {"__name__": name, "pod": pod}, "values": [[time_s, value]]}
        for name, pod, time_s, value in series
    ]
    data = {"resultType": "matrix", "result": result}
    return json.dumps({"status": "success", "data": data, **more})


async def ask(
    *urls: str, pods: tuple[str, ...] = ("p",), deadline_s: float = DEADLINE_S
) -> dict[str, ScrapedPage]:
    async with PrometheusSource("main", urls, deadline_s=deadline_s) as source:
        return dict(await source.pages(frozenset({"m"}), "shop", pods, 30.0))


@asynccontextmanager
async def raw_server(handler: Handler) -> AsyncIterator[str]:
    """A server that violates HTTP."""
    connections: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            await handler(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()
    for task in connections:
        task.cancel()
    await asyncio.gather(*connections, return_exceptions=True)
