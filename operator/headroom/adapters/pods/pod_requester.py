"""HTTP requests to untrusted pods: overall deadline, bounded response size."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp.abc import AbstractStreamWriter

from headroom.adapters.http_session import HttpSession, read_start
from headroom.errors import RequestFailed
from headroom.profiles.open_inference import RepeatedText

KEPT_BYTES = 1 << 16
"""Kept size of a response: the metadata of 256 inputs has 20 KiB."""
MAX_ANSWER_BYTES = 1 << 23
"""More is not read. The answer to one item of ones, with a thousand numbers, has 20 kB."""
BUFFER_BYTES = 1 << 14
"""Read buffer of a connection; twice as much may wait. At most 128 requests are under way, so that
answers take at most 12 MiB, and with the requests' chunks 24."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One response."""

    status: int
    text: str
    """Start of the body; invalid UTF-8 is replaced."""
    seconds: float


class PodRequester(HttpSession):
    """Sends requests to pods, each on a new connection. Use as an async context manager."""

    def __init__(self) -> None:
        super().__init__(connections=0, keep_alive=False)

    async def get(self, url: str, deadline_s: float) -> Answered:
        """GET; raise RequestFailed where nothing whole is answered in time."""
        return await self._ask("GET", url, deadline_s)

    async def post(
        self, url: str, body: str | RepeatedText, content_type: str, deadline_s: float
    ) -> Answered:
        """POST; raise RequestFailed where nothing whole is answered in time."""
        headers = {"Content-Type": content_type}
        data = body.encode() if isinstance(body, str) else _Repeated(body)
        return await self._ask("POST", url, deadline_s, data=data, headers=headers)

    async def _ask(self, method: str, url: str, deadline_s: float, **given: Any) -> Answered:
        begun_s = time.perf_counter()
        try:
            async with self.request(
                method, url, deadline_s, read_bufsize=BUFFER_BYTES, **given
            ) as response:
                kept = await read_start(response, KEPT_BYTES, MAX_ANSWER_BYTES)
                return Answered(
                    status=response.status,
                    text=kept.decode("utf-8", "replace"),
                    seconds=time.perf_counter() - begun_s,
                )
        except TimeoutError:
            raise RequestFailed(f"{url} did not answer within {deadline_s:.3g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise RequestFailed(f"{url}: {type(error).__name__}: {error}") from error


class _Repeated(aiohttp.Payload):
    """Sends a repeated text with its length, a chunk at a time: it is never in memory whole."""

    _value: RepeatedText

    def __init__(self, body: RepeatedText) -> None:
        super().__init__(body)
        self._size = body.size

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the whole body; nothing here asks for it."""
        return b"".join(self._value.chunks()).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Write the chunks; each waits until the connection has taken the one before."""
        for chunk in self._value.chunks():
            await writer.write(chunk)
