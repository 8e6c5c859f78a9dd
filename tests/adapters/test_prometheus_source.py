"""One query covers all pods; a response is complete or an error."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qs

import pytest

from adapters.asked_prometheus import answered, ask, raw_server
from headroom.errors import ScrapeFailed
from support.answering import Answering

pytestmark = pytest.mark.clock


async def test_one_query_covers_all_pods(server: Answering) -> None:
    server.gives(text=answered(("m", "p", 5.0, "1"), ("m", "q", 6.5, "2")))
    found = await ask(server.url, pods=("p", "q"), deadline_s=5.0)
    assert {pod: (page.time_s, list(page.page.values)) for pod, page in found.items()} == {
        "p": (5.0, [1.0]),
        "q": (6.5, [2.0]),
    }
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.query) == ("POST", "/api/v1/query", {})
    assert parse_qs(asked.body)["query"] == ['{__name__=~"m",namespace="shop",pod=~"p|q"}[30000ms]']


async def test_many_pods_are_queried_in_parts(server: Answering) -> None:
    server.gives(text=answered(("m", "p", 5.0, "1")))
    await ask(server.url, pods=tuple(f"p{number}" for number in range(250)), deadline_s=5.0)
    assert len(server.asked) == 3


async def test_latest_page_of_two_prometheus_replicas_is_used(server: Answering) -> None:
    server.gives(text=answered(("m", "p", 5.0, "1"), ("m", "q", 9.0, "1")))
    other = Answering()

    async def older(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4096)
        body = answered(("m", "p", 7.0, "2"), ("m", "q", 8.0, "2")).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()

    async with raw_server(older) as other.url:
        found = await ask(server.url, other.url, deadline_s=5.0)
    assert (found["p"].time_s, found["q"].time_s) == (7.0, 9.0)


async def test_one_of_two_prometheus_replicas_is_enough(server: Answering) -> None:
    server.gives(text=answered(("m", "p", 5.0, "1")))
    found = await ask("http://127.0.0.1:1", server.url, deadline_s=5.0)
    assert found["p"].time_s == 5.0


async def test_no_prometheus_replica_is_an_error(server: Answering) -> None:
    server.gives(status=503, text="starting")
    with pytest.raises(ScrapeFailed, match=r"main .* rejected the query: .*503"):
        await ask("http://127.0.0.1:1", server.url, deadline_s=5.0)
    assert len(server.asked) == 1  # no hidden retry


@pytest.mark.parametrize(
    ("url", "cause"),
    [
        ("http://127.0.0.1:1", "Failed to establish a new connection: "),
        ("http://no.such.invalid:9090", "Failed to resolve 'no.such.invalid' "),
    ],
)
async def test_unreachable_prometheus_names_the_cause_and_no_pool(url: str, cause: str) -> None:
    with pytest.raises(ScrapeFailed, match=rf"main \([\w.:]+\): ConnectionError: {cause}"):
        await ask(url, deadline_s=5.0)


async def test_partial_response_is_an_error(server: Answering) -> None:
    server.gives(text=answered(("m", "p", 5.0, "1"), warnings=["store gone"]))
    with pytest.raises(ScrapeFailed, match=r"the response is partial.*store gone"):
        await ask(server.url, deadline_s=5.0)
    server.gives(text=answered(("m", "p", 5.0, "1"), warnings=[], infos=["m is a gauge"]))
    assert await ask(server.url, deadline_s=5.0)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (200, "<html>"),
        (200, ""),
        (200, "{}"),
        (200, "[]"),
        (200, "null"),
        (200, '{"data": null}'),
        (200, '["warnings"]'),
        (200, '{"data": {"result": 5}}'),
        (200, '{"data": {"result": [{}]}}'),
        (200, '{"data": {"result": []'),
        (200, '{"data": ' + "[" * 100_000),
        (400, '{"status":"error","errorType":"bad_data"}'),
        (404, ""),
        (500, "x" * 100_000),
    ],
)
async def test_malformed_response_is_a_short_error(
    server: Answering, status: int, text: str
) -> None:
    server.gives(status=status, text=text)
    with pytest.raises(ScrapeFailed) as raised:
        await ask(server.url, deadline_s=5.0)
    assert len(str(raised.value)) < 400


async def test_redirect_is_not_followed(server: Answering) -> None:
    server.gives(status=307, Location="http://169.254.169.254/latest")
    with pytest.raises(ScrapeFailed, match="307"):
        await ask(server.url, deadline_s=5.0)
    assert len(server.asked) == 1


async def test_proxy_of_the_environment_is_not_used(
    server: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    server.gives(text=answered(("m", "p", 5.0, "1")))
    assert await ask(server.url, deadline_s=5.0)
