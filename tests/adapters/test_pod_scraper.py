"""Pods are untrusted: each scrape ends in time, with a page or an error."""

from __future__ import annotations

import asyncio
import gzip
import time

import pytest
from aiohttp import web

from headroom.adapters.pods.pod_scraper import MAX_PAGE_BYTES, MAX_SENT_BYTES, PodScraper
from headroom.errors import ScrapeFailed
from support.answering import Answering

pytestmark = pytest.mark.clock

DEADLINE_S = 0.3


async def scrape(server: Answering, deadline_s: float = DEADLINE_S, prefix: str = "") -> str:
    async with PodScraper(deadline_s=deadline_s) as scraper:
        return await scraper.scrape(f"{server.url}/metrics", prefix)


async def test_page_is_returned_unchanged(server: Answering) -> None:
    server.gives(text="m 1\nü 2\n")
    assert await scrape(server, deadline_s=5.0) == "m 1\nü 2\n"
    assert server.asked[0].path == "/metrics"
    assert server.asked[0].headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("status", [204, 404, 500, 503])
async def test_status_other_than_200_is_an_error(server: Answering, status: int) -> None:
    server.gives(status=status)
    with pytest.raises(ScrapeFailed, match=f"returned status {status}"):
        await scrape(server, deadline_s=5.0)


async def test_redirect_is_not_followed(server: Answering) -> None:
    server.gives(status=302, Location="http://169.254.169.254/latest")
    with pytest.raises(ScrapeFailed, match="returned status 302"):
        await scrape(server, deadline_s=5.0)
    assert len(server.asked) == 1


async def test_proxy_of_the_environment_is_not_used(
    server: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    server.gives(text="m 1\n")
    assert await scrape(server, deadline_s=5.0) == "m 1\n"


async def test_hanging_pod_ends_at_the_deadline(server: Answering) -> None:
    async def hang(_: web.Request) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    server.answer = hang
    begun_s = time.monotonic()
    with pytest.raises(ScrapeFailed, match=r"did not answer within 0\.3 s"):
        await scrape(server)
    assert time.monotonic() - begun_s < 5 * DEADLINE_S


async def test_hanging_pods_do_not_block_others(server: Answering) -> None:
    silent = [await asyncio.start_server(_never_answer, "127.0.0.1", 0) for _ in range(80)]
    ports = [one.sockets[0].getsockname()[1] for one in silent]
    server.gives(text="m 1\n")
    async with PodScraper(deadline_s=1.0) as scraper:
        hanging = [
            asyncio.create_task(scraper.scrape(f"http://127.0.0.1:{port}/metrics"))
            for port in ports
        ]
        await asyncio.sleep(0)
        assert await scraper.scrape(f"{server.url}/metrics") == "m 1\n"
        answers = await asyncio.gather(*hanging, return_exceptions=True)
    assert all(isinstance(one, ScrapeFailed) for one in answers)
    for one in silent:
        one.close()


async def _never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


async def test_slow_page_ends_at_the_deadline(server: Answering) -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"m 1\n")
            await asyncio.sleep(0.02)

    server.answer = drip
    with pytest.raises(ScrapeFailed, match="did not answer within"):
        await scrape(server)


async def test_endless_page_ends_at_the_size_limit(server: Answering) -> None:
    async def flood(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"m 1\n" * 16384)

    server.answer = flood
    with pytest.raises(ScrapeFailed, match=f"more than {MAX_PAGE_BYTES} bytes"):
        await scrape(server, deadline_s=10.0)


async def test_compressed_page_is_an_error(server: Answering) -> None:
    async def bomb(_: web.Request) -> web.Response:
        body = gzip.compress(b"\xff" * 10_000_000)
        return web.Response(body=body, headers={"Content-Encoding": "gzip"})

    server.answer = bomb
    with pytest.raises(ScrapeFailed, match="a page that is not UTF-8 text"):
        await scrape(server, deadline_s=5.0)


async def test_deleted_pod_is_an_error(server: Answering) -> None:
    async with PodScraper() as scraper:
        with pytest.raises(ScrapeFailed, match="refused the connection: nothing listens"):
            await scraper.scrape("http://127.0.0.1:1/metrics")


async def test_port_that_closes_plain_connections_is_named_as_one_that_expects_tls() -> None:
    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(close, "127.0.0.1", 0) as closing, PodScraper() as one:
        port = closing.sockets[0].getsockname()[1]
        with pytest.raises(ScrapeFailed, match="without an answer, as a port that expects TLS"):
            await one.scrape(f"http://127.0.0.1:{port}/metrics")


@pytest.mark.parametrize("url", ["http://:8000/metrics", "http://[::1/metrics", "file:///etc"])
async def test_invalid_address_is_an_error(url: str) -> None:
    async with PodScraper() as scraper:
        with pytest.raises(ScrapeFailed):
            await scraper.scrape(url)


async def test_prefix_keeps_only_matching_lines(
    server: Answering,
) -> None:
    other = '# HELP other x\nother_1{a="ours_"} 1\n' * 20_000
    assert len(other) > MAX_PAGE_BYTES
    server.gives(text=f"ours_1 1\n{other}ours_2 2\n{other}ours_")
    assert await scrape(server, 5.0, "ours_") == "ours_1 1\nours_2 2\nours_"
    with pytest.raises(ScrapeFailed, match=f"more than {MAX_PAGE_BYTES} bytes"):
        await scrape(server, 5.0)


@pytest.mark.parametrize(
    ("line", "times", "words"),
    [
        ("other 1\n", MAX_SENT_BYTES // 8 + 1, f"more than {MAX_SENT_BYTES} bytes"),
        ("ours_ 1\n", MAX_PAGE_BYTES // 8 + 1, f"{MAX_PAGE_BYTES} bytes in lines of ours_"),
        ("x", MAX_PAGE_BYTES + 1, f"{MAX_PAGE_BYTES} bytes in lines of ours_"),
    ],
)
async def test_kept_and_received_bytes_are_bounded(
    server: Answering, line: str, times: int, words: str
) -> None:
    server.gives(text=line * times)
    with pytest.raises(ScrapeFailed, match=words):
        await scrape(server, 5.0, "ours_")


CHUNK = b"4\r\nxxxx\r\n"


async def test_line_that_arrives_in_chunks_of_four_bytes_takes_as_long_as_its_length() -> None:
    """Copied whole for each chunk, one page of 590 kB took the event loop 7 s."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(CHUNK * (MAX_PAGE_BYTES // 4) + b"0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        began_s = time.thread_time()
        async with PodScraper(deadline_s=60.0) as scraper:
            page = await scraper.scrape(f"http://127.0.0.1:{port}/metrics", "ours_")
        assert time.thread_time() - began_s < 1.0
    assert page == "x" * MAX_PAGE_BYTES
