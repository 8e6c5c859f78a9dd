"""The session of prometheus-api-client with bounds: deadline, bytes and parts of an answer.

One deadline for connecting, headers and a slow body; no hidden retries, no redirects, no proxies of
the environment. What an answer has is decided by the pods of tenants.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import Any

import requests
from prometheus_api_client import PrometheusConnect
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.util.retry import Retry

DEADLINE_S = 4.0
MAX_ANSWER_BYTES = 8 << 20
"""A series of three samples has 400 bytes: some 20 000 series of 100 pods."""
MAX_SERIES = 25_000
MAX_LISTS = 250_000
"""In an answer; most are pairs of a time and a number. Both at their bounds take 90 MiB of memory:
8 MiB of shorter series took 120 MiB, four at once."""
LARGE_BYTES = 1 << 20
"""Answers above it are parsed one at a time."""
_CHUNK_BYTES = 1 << 16


class OneAtATime:
    """Lets one thread go on at a time, from the end of a large answer until it is read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._here = threading.local()

    def begin(self) -> None:
        """Wait for the turn of this thread."""
        self._lock.acquire()
        self._here.holds = True

    def end(self) -> None:
        """Let the next thread go on, if this one has the turn."""
        if getattr(self._here, "holds", False):
            self._here.holds = False
            self._lock.release()


def bounded_client(url: str, deadline_s: float, large: OneAtATime) -> PrometheusConnect:
    """Return a client of one Prometheus. Its thread calls `large.end` when an answer is read."""
    url = url.rstrip("/")
    session = _Session(deadline_s, large)
    client = PrometheusConnect(url=url, session=session, retry=Retry(total=0), method="POST")
    session.mount(url, _DeadlineAdapter(max_retries=Retry(total=0)))  # replaces the library's
    return client


class _Session(requests.Session):
    """Gives every request a deadline and every response a size limit."""

    def __init__(self, deadline_s: float, large: OneAtATime) -> None:
        super().__init__()
        self.trust_env = False
        self._deadline_s = deadline_s
        self._large = large

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
        if len(response.content) > LARGE_BYTES:
            self._large.begin()
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
    series, lists = body.count(b'"metric"'), body.count(b"[")
    if series > MAX_SERIES or lists > MAX_LISTS:
        raise requests.RequestException(
            f"the response must have at most {MAX_SERIES} series and {MAX_LISTS} lists; "
            f"got {series} and {lists}"
        )
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
