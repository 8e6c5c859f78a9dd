"""Embeddings from a model server: one kept connection, clear errors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from headroom_server.runtime.embedding import EmbeddingError, RemoteEmbedder
from support.loopback import Handler, on_loopback

PATH = "/v1/models/e:predict"


@asynccontextmanager
async def embedder(handler: Handler) -> AsyncIterator[RemoteEmbedder]:
    async with on_loopback(handler, method="POST", path=PATH) as url:
        found = RemoteEmbedder(f"{url}{PATH}", lambda text: [len(text), 7])
        try:
            yield found
        finally:
            found.close()


@pytest.mark.parametrize(
    "answer", [{"predictions": [[0.5, 1]]}, {"predictions": [{"embedding": [0.5, 1]}]}]
)
async def test_an_embedding_is_the_first_prediction(answer: object) -> None:
    asked: list[object] = []
    peers: set[object] = set()

    async def handler(request: web.Request) -> web.Response:
        asked.append(await request.json())
        peers.add(request.transport and request.transport.get_extra_info("peername"))
        return web.json_response(answer)

    async with embedder(handler) as embed:
        for _ in range(3):
            assert await embed("abc") == [0.5, 1.0]

    assert asked == [{"instances": [[3, 7]]}] * 3
    assert len(peers) <= 2  # one connection per thread


async def test_a_connection_that_was_closed_is_opened_again() -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.json_response({"predictions": [[1.0]]}, headers={"connection": "close"})

    async with embedder(handler) as embed:
        for _ in range(4):
            assert await embed("abc") == [1.0]


@pytest.mark.parametrize(
    ("status", "body"),
    [(503, "busy"), (200, "{}"), (200, "no"), (200, '{"predictions": []}'),
     (200, '{"predictions": [["a"]]}'), (200, '{"predictions": [{}]}')],
)  # fmt: skip
async def test_what_is_no_embedding_is_an_error(status: int, body: str) -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=status, text=body)

    async with embedder(handler) as embed:
        with pytest.raises(EmbeddingError):
            await embed("abc")


@pytest.mark.parametrize("url", ["", "https://h/v1/models/e:predict", "http://h/other", "http://"])
def test_another_url_is_refused_with_the_setting(url: str) -> None:
    with pytest.raises(ValueError, match="HEADROOM_SEMANTIC_CACHE_URL"):
        RemoteEmbedder(url, lambda _: [])
