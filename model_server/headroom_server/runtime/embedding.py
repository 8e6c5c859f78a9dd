"""Embeddings of texts by a model server: its typed JSON endpoint, with token numbers as instance.

Calls run on threads of their own, each with one connection that is kept.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

THREADS = 2
CALL_S = 1.0
MOST_BYTES = 1 << 20


class EmbeddingError(Exception):
    """The server gave no embedding; the message says what it gave."""


class RemoteEmbedder:
    """Embeds texts. `encode` makes token numbers of them."""

    def __init__(self, url: str, encode: Callable[[str], Sequence[int]]) -> None:
        """Take an http URL that ends with `:predict`.

        Raises:
            ValueError: the URL is another one.
        """
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname or not parts.path.endswith(":predict"):
            raise ValueError(
                "HEADROOM_SEMANTIC_CACHE_URL must be http://HOST[:PORT]/v1/models/MODEL:predict; "
                f"got {url!r:.200}"
            )
        self._host, self._port, self._path = parts.hostname, parts.port or 80, parts.path
        self._encode = encode
        self._threads = ThreadPoolExecutor(THREADS, "embedding")
        self._own = threading.local()
        self._connections: list[http.client.HTTPConnection] = []

    async def __call__(self, text: str) -> Sequence[float]:
        """Return a text's embedding.

        Raises:
            EmbeddingError: the server answered with something else.
            OSError: it did not answer.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._embed, text)

    def close(self) -> None:
        """End the threads and close their connections."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for connection in self._connections:
            connection.close()

    def _embed(self, text: str) -> Sequence[float]:
        body = json.dumps({"instances": [list(self._encode(text))]})
        try:
            status, answer = self._call(body)
        except (OSError, http.client.HTTPException):
            # a kept connection may have been closed meanwhile; closed here, it opens a new one
            self._own.connection.close()
            try:
                status, answer = self._call(body)
            except http.client.HTTPException as error:
                raise EmbeddingError(f"no HTTP answer: {error!r}") from error
        if status != http.client.OK:
            raise EmbeddingError(f"status {status}: {answer[:200]!r}")
        return _embedding_of(answer)

    def _call(self, body: str) -> tuple[int, bytes]:
        connection = getattr(self._own, "connection", None)
        if connection is None:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=CALL_S)
            self._own.connection = connection
            self._connections.append(connection)
        connection.request("POST", self._path, body, {"content-type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read(MOST_BYTES)


def _embedding_of(answer: bytes) -> Sequence[float]:
    """Return the numbers of the first prediction; of its first output if it has several."""
    try:
        (first,) = json.loads(answer)["predictions"]
        numbers = next(iter(first.values())) if isinstance(first, dict) else first
        return [float(one) for one in numbers]
    except (KeyError, StopIteration, TypeError, ValueError) as error:
        raise EmbeddingError(
            f"predictions must be one list of numbers; got {answer[:200]!r}"
        ) from error
