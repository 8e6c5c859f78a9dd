"""One listener that serves the telemetry of every pod, each at its address in 127.0.0.0/8.

Load is arrivals per second of a service, shared evenly by its pods; a request takes 250 ms.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from enum import Enum
from typing import Self

from aiohttp import web

from reliability.testbed.prometheus import Scraped, answer, namespace_asked

FIXED_S, PER_ITEM_S, MAX_BATCH = 0.15, 0.06, 4
REPLICA_RPS = 8.0
"""Rate of one replica below its ceiling: 0.8 x 4 / (0.15 + 4 x 0.06) = 8.2."""
_BOUNDS_S = tuple(0.001 * 1.15**k for k in range(80))
_REQUEST_S = 0.25

Owner = tuple[str, str]
"""Namespace and name of a service."""


class PodFault(Enum):
    """A fault of a service's telemetry."""

    ERROR = "500"
    HANG = "no answer"
    RESET = "reset"
    DRIP = "one byte at a time"
    TRUNCATED = "half a page"
    NAN = "NaN for numbers"
    NEGATIVE = "numbers below zero"
    HUGE = "a page of a megabyte"
    HTML = "a page of HTML"
    EMPTY = "an empty page"
    REDIRECT = "a redirect elsewhere"
    OTHER_MODEL = "the page of another model"
    PARTIAL = "an answer marked as partial"


OF_PODS = frozenset(PodFault) - {PodFault.PARTIAL}
OF_PROMETHEUS = frozenset(PodFault) - {PodFault.NAN, PodFault.NEGATIVE, PodFault.OTHER_MODEL}
PROMETHEUS = "prometheus"
"""Stands for a service's name where it is the Prometheus of a namespace that is faulty."""


@dataclass(slots=True)
class _Pod:
    owner: Owner
    name: str
    served: float = 0.0
    at_s: float = 0.0


class Exporter:
    """Use as an async context manager; `port` is every pod's."""

    def __init__(self) -> None:
        self.load_rps: dict[Owner, float] = {}
        self.waiting: dict[Owner, int] = {}
        """Requests queued at each pod."""
        self.faults: dict[Owner, PodFault] = {}
        self._pods: dict[str, _Pod] = {}
        self.port = 0

    async def __aenter__(self) -> Self:
        """Listen on all addresses of this machine."""
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(
            application, access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "0.0.0.0", 0).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        """End."""
        await self._runner.cleanup()

    def begin(self, address: str, owner: Owner, name: str = "") -> None:
        """Add a pod that serves from now on, its counters at zero."""
        self._advance(owner)
        self._pods[address] = _Pod(owner, name, at_s=time.monotonic())

    def end(self, address: str) -> None:
        """Remove a pod with its counters."""
        pod = self._pods.get(address)
        if pod is not None:
            self._advance(pod.owner)
            del self._pods[address]

    def load(self, owner: Owner, rps: float) -> None:
        """Set the requests per second that arrive at the service."""
        self._advance(owner)
        self.load_rps[owner] = rps

    def _advance(self, owner: Owner) -> None:
        pods = [pod for pod in self._pods.values() if pod.owner == owner]
        now_s = time.monotonic()
        for pod in pods:
            pod.served += self.load_rps.get(owner, 0.0) / len(pods) * (now_s - pod.at_s)
            pod.at_s = now_s

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        if request.path == "/api/v1/query":
            return await self._answer_as_prometheus(request)
        pod = self._pods.get(request.transport.get_extra_info("sockname")[0])
        if pod is None:
            request.transport.abort()
            return web.Response()
        fault, text = self.faults.get(pod.owner), self._page(pod)
        return web.Response(text=text) if fault is None else await _faulty(request, fault, text)

    async def _answer_as_prometheus(self, request: web.Request) -> web.StreamResponse:
        """Return all pods of a namespace; each was scraped just now."""
        asked = {**request.query, **await request.post()}
        namespace = namespace_asked(str(asked.get("query", "")))
        pods = [pod for pod in self._pods.values() if pod.owner[0] == namespace]
        pages = [Scraped(namespace, pod.name, self._page(pod)) for pod in pods]
        fault = self.faults.get((namespace, PROMETHEUS))
        text = answer(pages, time.time(), partial=fault is PodFault.PARTIAL)
        if fault in (None, PodFault.PARTIAL):
            return web.Response(text=text, content_type="application/json")
        return await _faulty(request, fault, text)

    def _page(self, pod: _Pod) -> str:
        self._advance(pod.owner)
        waiting = self.waiting.get(pod.owner, 0)
        return page(pod.owner[1], served=int(pod.served), waiting=waiting)


async def _faulty(request: web.Request, fault: PodFault, text: str) -> web.StreamResponse:
    assert request.transport is not None
    match fault:
        case PodFault.ERROR:
            return web.Response(status=500)
        case PodFault.HANG:
            await asyncio.Event().wait()
        case PodFault.RESET:
            request.transport.abort()
        case PodFault.DRIP:
            response = web.StreamResponse()
            await response.prepare(request)
            for letter in text.encode():
                await response.write(bytes([letter]))
                await asyncio.sleep(0.05)
            return response
        case PodFault.TRUNCATED:
            return web.Response(text=text[: len(text) // 2])
        case PodFault.REDIRECT:
            raise web.HTTPFound("http://127.255.0.1/metrics")
    return web.Response(text=_pages(fault, text))


def _pages(fault: PodFault, text: str) -> str:
    numbers = [line.rpartition(" ") for line in text.splitlines()]
    match fault:
        case PodFault.NAN:
            return "".join(f"{name} NaN\n" for name, _, _ in numbers)
        case PodFault.NEGATIVE:
            return "".join(f"{name} -1\n" for name, _, _ in numbers)
        case PodFault.HUGE:
            return text + "# \n" * (1 << 19)
        case PodFault.HTML:
            return "<html><body>Sign in</body></html>\n"
        case PodFault.OTHER_MODEL:
            return text.replace('model="', 'model="another-')
    return ""


def page(model: str, *, served: int, waiting: int = 0) -> str:
    """Expose a server that answered this many requests, one per batch."""
    label = f'model="{model}"'
    numbers = {
        f"headroom_requests_received_total{{{label}}}": served + waiting,
        f'headroom_requests_total{{{label},outcome="ok"}}': served,
        f"headroom_requests_waiting{{{label}}}": waiting,
        f"headroom_requests_running{{{label}}}": 0,
        f"headroom_max_batch_size{{{label}}}": MAX_BATCH,
        f"headroom_cost_fixed_seconds{{{label}}}": FIXED_S,
        f"headroom_cost_per_item_seconds{{{label}}}": PER_ITEM_S,
        f"headroom_execution_duration_seconds_count{{{label}}}": served,
        f"headroom_execution_duration_seconds_sum{{{label}}}": served * (FIXED_S + PER_ITEM_S),
        f"headroom_batch_size_sum{{{label}}}": served,
    }
    lines = [f"{name} {value}" for name, value in numbers.items()]
    bucket = f"headroom_request_duration_seconds_bucket{{{label},le="
    lines += [f'{bucket}"{le}"}} {served if slow else 0}' for le, slow in _BUCKETS]
    return "\n".join([*lines, f'{bucket}"+Inf"}} {served}', ""])


_BUCKETS = tuple((format(bound, ".6g"), bound >= _REQUEST_S) for bound in _BOUNDS_S)
