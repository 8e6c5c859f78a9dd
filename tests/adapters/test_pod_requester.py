"""Pods are untrusted: each request ends in time, with a response or an error."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from headroom.adapters.pods.pod_requester import KEPT_BYTES, Answered, PodRequester
from headroom.errors import RequestFailed
from headroom.profiles.open_inference import RepeatedText
from support.answering import Answering

pytestmark = pytest.mark.clock


async def post(
    server: Answering, body: str | RepeatedText = "{}", deadline_s: float = 5.0
) -> Answered:
    async with PodRequester() as requester:
        return await requester.post(f"{server.url}/infer", body, "text/plain", deadline_s)


async def test_request_is_sent_and_its_answer_timed(server: Answering) -> None:
    async def slowly(_: web.Request) -> web.Response:
        await asyncio.sleep(0.1)
        return web.Response(status=422, text="no such input: \u00fc")

    server.answer = slowly
    answered = await post(server, "\u00fc")
    assert (answered.status, answered.text) == (422, "no such input: \u00fc")
    assert 0.1 <= answered.seconds < 2.0
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.body) == ("POST", "/infer", "\u00fc")
    assert asked.headers["Content-Type"] == "text/plain"


async def test_repeated_body_is_sent_whole_with_its_length(server: Answering) -> None:
    server.gives(text="ok")
    body = RepeatedText(pieces=((b"[1", 1), (b", 1", 100_000), (b"]", 1)))
    assert (await post(server, body)).status == 200
    (asked,) = server.asked
    assert asked.body == "[1" + ", 1" * 100_000 + "]"
    assert asked.headers["Content-Length"] == str(body.size)
    assert "Transfer-Encoding" not in asked.headers


async def test_redirect_is_returned_and_not_followed(server: Answering) -> None:
    server.gives(status=302, Location="http://169.254.169.254/latest")
    assert (await post(server)).status == 302
    assert len(server.asked) == 1


async def test_proxy_of_the_environment_is_not_used(
    server: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    server.gives(text="ok")
    async with PodRequester() as requester:
        assert (await requester.get(f"{server.url}/v2/models/m", 5.0)).text == "ok"


async def test_large_answer_is_timed_completely_and_truncated(
    server: Answering,
) -> None:
    server.gives(text="x" * (KEPT_BYTES + 1000))
    answered = await post(server)
    assert (answered.status, len(answered.text)) == (200, KEPT_BYTES)


async def test_timeout_or_no_answer_is_an_error(server: Answering) -> None:
    async def never(_: web.Request) -> web.Response:
        await asyncio.sleep(5.0)
        return web.Response()

    server.answer = never
    with pytest.raises(RequestFailed, match=r"did not answer within 0\.2 s"):
        await post(server, deadline_s=0.2)
    async with PodRequester() as requester:
        with pytest.raises(RequestFailed, match=r"127\.0\.0\.1"):
            await requester.get("http://127.0.0.1:1/", 5.0)
