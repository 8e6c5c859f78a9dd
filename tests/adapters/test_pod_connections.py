"""The HTTP client against servers that misbehave, byte by byte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from headroom.adapters.pods.http_exchange import MOST_OF_HEAD
from headroom.adapters.pods.pod_connections import PodConnections, Request

pytestmark = pytest.mark.clock

_ENDLESS = b"a" * 2 * MOST_OF_HEAD
_CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nm 1\n"
CLOSING = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nm 1\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nm \r\n2\r\n1\n\r\n0\r\n\r\n"
UNTIL_CLOSED = b"HTTP/1.0 200 OK\r\n\r\nm 1\n"


class Served:
    """Sends one response per request and counts connections; an empty response closes."""

    def __init__(self, answers: Sequence[bytes]) -> None:
        self.answers = list(answers)
        self.asked: list[bytes] = []
        self.opened = 0
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        while self.answers:
            try:
                self.asked.append(await reader.readuntil(b"\r\n\r\n"))
            except asyncio.IncompleteReadError:
                break
            answer = self.answers.pop(0)
            writer.write(answer)
            if answer in (b"", UNTIL_CLOSED) or answer.endswith(b"cut"):
                break
        writer.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/metrics"


@asynccontextmanager
async def served(*answers: bytes) -> AsyncIterator[Served]:
    one = Served(answers)
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    one.port = server.sockets[0].getsockname()[1]
    try:
        yield one
    finally:
        server.close()


async def get(connections: PodConnections, url: str) -> tuple[int, bytes]:
    body = bytearray()
    status = await connections.get(Request.of(url, "Accept: text/plain\r\n"), body.extend)
    return status, bytes(body)


@pytest.fixture
async def connections() -> AsyncIterator[PodConnections]:
    one = PodConnections()
    yield one
    one.close()


@pytest.mark.parametrize("answer", [OK, CLOSING, CHUNKED, UNTIL_CLOSED])
async def test_body_ends_as_framed(connections: PodConnections, answer: bytes) -> None:
    async with served(answer, answer) as one:
        for _ in range(2):
            assert await get(connections, one.url) == (200, b"m 1\n")
        assert one.opened == (1 if answer in (OK, CHUNKED) else 2)
    host = f"Host: 127.0.0.1:{one.port}\r\n".encode()
    assert one.asked[0] == b"GET /metrics HTTP/1.1\r\n" + host + b"Accept: text/plain\r\n\r\n"


async def test_connection_closed_while_idle_is_reopened(
    connections: PodConnections,
) -> None:
    async with served(OK, b"", OK) as one:
        for _ in range(2):
            assert await get(connections, one.url) == (200, b"m 1\n")
        assert one.opened == 2


async def test_concurrent_requests_use_two_connections(connections: PodConnections) -> None:
    async with served(OK, OK, OK) as one:
        await asyncio.gather(get(connections, one.url), get(connections, one.url))
        await get(connections, one.url)
        assert one.opened == 2


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (b"", ConnectionError, "closed without an answer"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut",
            ConnectionError,
            "within the response",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Lcut", ConnectionError, "within the response"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", ValueError, "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nA: " + _ENDLESS, ValueError, "bytes of headers"),
        # Kept by the parser, and skipped by it, without any bound.
        (_CHUNKS + b"0\r\nA: " + _ENDLESS, ValueError, "extensions or trailers"),
        (_CHUNKS + b"1;" + _ENDLESS, ValueError, "extensions or trailers"),
        (_CHUNKS + b"1;aaaaaaaa\r\na\r\n" * MOST_OF_HEAD, ValueError, "extensions or trailers"),
    ],
)
async def test_malformed_response_is_an_error(
    connections: PodConnections, answer: bytes, error: type[Exception], words: str
) -> None:
    async with served(answer, OK) as one:
        with pytest.raises(error, match=words):
            await get(connections, one.url)
        assert await get(connections, one.url) == (200, b"m 1\n")
        assert one.opened == 2


async def test_unsolicited_response_is_not_used(connections: PodConnections) -> None:
    async with served(OK + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nm 9\n", OK) as one:
        assert await get(connections, one.url) == (200, b"m 1\n")
        assert await get(connections, one.url) == (200, b"m 1\n")


async def test_exception_of_the_sink_ends_the_exchange(connections: PodConnections) -> None:
    def refuse(_: bytes) -> None:
        raise LookupError("too much")

    async with served(OK, OK) as one:
        with pytest.raises(LookupError, match="too much"):
            await connections.get(Request.of(one.url, ""), refuse)
        assert await get(connections, one.url) == (200, b"m 1\n")
        assert one.opened == 2


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("http://[::1]:80/metrics", b"GET /metrics HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"),
        ("http://a:1/m?name=b c", b"GET /m?name=b%20c HTTP/1.1\r\nHost: a:1\r\n\r\n"),
        ("http://a:1/m HTTP/1.1\r\nX: y", b"GET /m%20HTTP/1.1X:%20y HTTP/1.1\r\nHost: a:1\r\n\r\n"),
    ],
)
def test_request_has_one_line_and_its_headers(url: str, line: bytes) -> None:
    assert Request.of(url, "").text == line
