"""Reads metrics pages from a Prometheus, which may be slow, wrong or overloaded.

It uses prometheus-api-client over a session that adds bounds (`prometheus_session`). A response
with warnings is partial (a store behind Thanos did not answer): its missing series would read as
zeros, so it is rejected. The library blocks, so queries run in a few threads, for which namespaces
wait in turns: their pods decide how much there is to read.

The library takes 20 MB and is imported only if a source is configured.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

import requests
from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException
from urllib3.exceptions import MaxRetryError

from headroom.adapters.prometheus.prometheus_session import DEADLINE_S, OneAtATime, bounded_client
from headroom.adapters.redaction import redacted
from headroom.errors import ScrapeFailed
from headroom.fair_slots import FairSlots
from headroom.telemetry.errors import TelemetryError
from headroom.telemetry.prometheus_pages import NAMESPACE_LABEL, POD_LABEL, PageReader, ScrapedPage
from headroom.telemetry.promql import equals, one_of, recent

PAUSE = 3.0
"""Times as long as a thread worked, before the next query: decoding holds up the event loop."""
THREADS = 4
PODS_PER_QUESTION = 100
_Answer = tuple[Mapping[str, ScrapedPage], float]
"""With the CPU time of the thread, in seconds."""
_OF_NO_ANSWER = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""Exceptions of the library for a body that is not JSON or has another shape."""
_CONNECTION = re.compile(r"^\w+\(host=[^)]*\): ")
"""Beginning of urllib3's messages on connections."""


class PrometheusSource:
    """One Prometheus, or its replicas that scrape the same pods. An async context manager."""

    def __init__(
        self,
        name: str,
        urls: Sequence[str],
        *,
        replica_labels: Iterable[str] = (),
        deadline_s: float = DEADLINE_S,
    ) -> None:
        """Query every URL and use the latest page of each pod."""
        self._name = name
        self._deadline_s = deadline_s
        self._reader, self._reading = PageReader(replica_labels), threading.Lock()
        self._large = OneAtATime()
        self._clients = [bounded_client(url, deadline_s, self._large) for url in urls]
        # A namespace alone has half of the turns, and all of the threads.
        self._turns = FairSlots(2 * THREADS * len(self._clients))
        self._threads: ThreadPoolExecutor | None = None

    async def __aenter__(self) -> Self:
        """Start the threads."""
        count = THREADS * len(self._clients)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix=f"prometheus-{self._name}")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let running queries end at their deadline."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
        for client in self._clients:
            client.close()

    async def pages(
        self, metrics: frozenset[str], namespace: str, pods: Sequence[str], window_s: float
    ) -> Mapping[str, ScrapedPage]:
        """Return the latest page of each pod that is not older than `window_s`.

        Raises ScrapeFailed if no Prometheus replica answered completely.
        """
        asked = [
            recent(
                [
                    one_of("__name__", metrics),
                    equals(NAMESPACE_LABEL, namespace),
                    one_of(POD_LABEL, pods[first : first + PODS_PER_QUESTION]),
                ],
                window_s,
            )
            for first in range(0, len(pods), PODS_PER_QUESTION)
        ]
        answers = await asyncio.gather(
            *(self._in_turn(namespace, one, query) for one in self._clients for query in asked),
            return_exceptions=True,
        )
        newest: dict[str, ScrapedPage] = {}
        whole = False
        failure: ScrapeFailed | None = None
        for answer in answers:
            if isinstance(answer, ScrapeFailed):
                failure = answer
            elif isinstance(answer, BaseException):
                raise answer
            else:
                whole = True
                for pod, page in answer.items():
                    if pod not in newest or page.time_s > newest[pod].time_s:
                        newest[pod] = page
        if failure is not None and not whole:
            raise failure
        return newest

    async def _in_turn(
        self, namespace: str, client: PrometheusConnect, query: str
    ) -> Mapping[str, ScrapedPage]:
        async with self._turns.slot(namespace):
            pages, worked_s = await self._answer(client, query)
            await asyncio.sleep(PAUSE * worked_s)
            return pages

    async def _answer(self, client: PrometheusConnect, query: str) -> _Answer:
        assert self._threads is not None
        loop = asyncio.get_running_loop()
        where = f"Prometheus {self._name} ({client.prometheus_host})"
        try:
            # Others may have had their turn before, and all threads.
            async with asyncio.timeout(3 * self._deadline_s):
                return await loop.run_in_executor(self._threads, self._ask, client, query)
        except TimeoutError:
            raise ScrapeFailed(f"{where} did not answer in time") from None
        except PrometheusApiClientException as error:
            raise ScrapeFailed(
                f"{where} rejected the query: {redacted(str(error))[:200]}"
            ) from error
        except (requests.RequestException, TelemetryError, *_OF_NO_ANSWER) as error:
            raise ScrapeFailed(
                f"{where}: {type(error).__name__}: {redacted(_cause_of(error))[:200]}"
            ) from error

    def _ask(self, client: PrometheusConnect, query: str) -> _Answer:
        begun_s = time.thread_time()
        try:
            result = client.custom_query(query)
            with self._reading:
                pages = self._reader.read(result)
        finally:
            self._large.end()
        return pages, time.thread_time() - begun_s


def _cause_of(error: Exception) -> str:
    """Return the failure without the names of the library's pools and connections around it."""
    inner = error.args[0] if error.args else None
    if isinstance(inner, MaxRetryError) and inner.reason is not None:
        return _CONNECTION.sub("", str(inner.reason))
    return str(error)
