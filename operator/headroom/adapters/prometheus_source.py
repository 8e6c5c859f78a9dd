"""Reads metrics pages from a Prometheus, which may be slow, wrong or overloaded.

It uses prometheus-api-client over a session that adds bounds: one deadline for connecting, headers
and a slow body; a size limit; no hidden retries, no redirects, no proxies of the environment. A
response with warnings is partial (a store behind Thanos did not answer): its missing series would
read as zeros, so it is rejected. The library blocks, so queries run in a few threads.

The library takes 20 MB and is imported only if a source is configured.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import requests
from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.util.retry import Retry

from headroom.adapters.redaction import redacted
from headroom.errors import ScrapeFailed
from headroom.telemetry.errors import TelemetryError
from headroom.telemetry.prometheus_pages import (
    NAMESPACE_LABEL,
    POD_LABEL,
    PageReader,
    ScrapedPage,
)
from headroom.telemetry.promql import equals, one_of, recent

DEADLINE_S = 4.0
MAX_ANSWER_BYTES = 8 << 20
"""A series of three samples has 400 bytes: some 20 000 series of 100 pods."""
THREADS = 4
PODS_PER_QUESTION = 100
_CHUNK_BYTES = 1 << 16
_OF_NO_ANSWER = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""Exceptions of the library for a body that is not JSON or has another shape."""


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
        self._reader = PageReader(replica_labels)
        self._clients = [_client(url, deadline_s) for url in urls]
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
            *(self._answer(client, query) for client in self._clients for query in asked),
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

    async def _answer(self, client: PrometheusConnect, query: str) -> Mapping[str, ScrapedPage]:
        assert self._threads is not None
        loop = asyncio.get_running_loop()
        where = f"Prometheus {self._name} ({client.prometheus_host})"
        try:
            # Includes waiting for a thread: the session's deadline starts when the query is sent.
            async with asyncio.timeout(2 * self._deadline_s):
                return await loop.run_in_executor(self._threads, self._ask, client, query)
        except TimeoutError:
            raise ScrapeFailed(f"{where} did not answer in time") from None
        except PrometheusApiClientException as error:
            raise ScrapeFailed(
                f"{where} rejected the query: {redacted(str(error))[:200]}"
            ) from error
        except (requests.RequestException, TelemetryError, *_OF_NO_ANSWER) as error:
            raise ScrapeFailed(
                f"{where}: {type(error).__name__}: {redacted(str(error))[:200]}"
            ) from error

    def _ask(self, client: PrometheusConnect, query: str) -> Mapping[str, ScrapedPage]:
        return self._reader.read(client.custom_query(query))


def _client(url: str, deadline_s: float) -> PrometheusConnect:
    url = url.rstrip("/")
    session = _Session(deadline_s)
    client = PrometheusConnect(url=url, session=session, retry=Retry(total=0), method="POST")
    session.mount(url, _DeadlineAdapter(max_retries=Retry(total=0)))  # replaces the library's
    return client


class _Session(requests.Session):
    """Gives every request a deadline and every response a size limit."""

    def __init__(self, deadline_s: float) -> None:
        super().__init__()
        self.trust_env = False
        self._deadline_s = deadline_s

    def request(  # type: ignore[override]  # any arguments of the library
        self, method: Any, url: Any, **options: Any
    ) -> requests.Response:
        """Send the query in the body, since it may be long; raise RequestException."""
        options["data"] = options.pop("params", None)
        options |= {"timeout": self._deadline_s, "allow_redirects": False, "stream": True}
        response = super().request(method, url, **options)
        try:
            _read_body(response)
        finally:
            response.raw.deadline.cancel()
            response.close()
        if response.status_code == 200 and b'"warnings"' in response.content:
            warnings = response.json().get("warnings")
            if warnings:
                raise requests.RequestException(f"the response is partial: {warnings!r:.160}")
        return response


def _read_body(response: requests.Response) -> None:
    body = bytearray()
    for chunk in response.iter_content(_CHUNK_BYTES):
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise requests.RequestException(f"the response has more than {MAX_ANSWER_BYTES} bytes")
    response._content = bytes(body)


class _Deadlined:
    """A connection that is closed if a response does not end in time.

    A socket timeout alone restarts with every received byte.
    """

    sock: socket.socket | None
    timeout: float | None
    _until_s = 0.0

    def request(self, *args: Any, **options: Any) -> None:
        self._until_s = time.monotonic() + (self.timeout or DEADLINE_S)
        super().request(*args, **options)  # type: ignore[misc]

    def getresponse(self) -> Any:
        timer = threading.Timer(max(0.0, self._until_s - time.monotonic()), _cut, [self.sock])
        timer.daemon = True
        timer.start()
        try:
            response = super().getresponse()  # type: ignore[misc]
        except BaseException:
            timer.cancel()
            raise
        response.deadline = timer
        return response


def _cut(connection: socket.socket | None) -> None:
    with suppress(OSError):
        if connection is not None:
            connection.shutdown(socket.SHUT_RDWR)


class _Connection(_Deadlined, HTTPConnection):
    pass


class _SecureConnection(_Deadlined, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class _DeadlineAdapter(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
