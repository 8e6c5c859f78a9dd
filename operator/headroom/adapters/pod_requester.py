"""HTTP requests to untrusted pods: overall deadline, bounded response size."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import aiohttp

from headroom.adapters.http_session import HttpSession
from headroom.errors import RequestFailed

KEPT_BYTES = 1 << 18
"""Kept size of a response: enough for a model's metadata or an error."""
MAX_ANSWER_BYTES = 1 << 26


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

    async def post(self, url: str, body: str, content_type: str, deadline_s: float) -> Answered:
        """POST; raise RequestFailed where nothing whole is answered in time."""
        headers = {"Content-Type": content_type}
        return await self._ask("POST", url, deadline_s, data=body.encode(), headers=headers)

    async def _ask(self, method: str, url: str, deadline_s: float, **given: Any) -> Answered:
        begun_s = time.perf_counter()
        try:
            async with self.request(method, url, deadline_s, **given) as response:
                kept, size = bytearray(), 0
                async for chunk in response.content.iter_any():
                    size += len(chunk)
                    if size > MAX_ANSWER_BYTES:
                        raise RequestFailed(f"{url} returned more than {MAX_ANSWER_BYTES} bytes")
                    kept += chunk[: KEPT_BYTES - len(kept)]
                return Answered(
                    status=response.status,
                    text=kept.decode("utf-8", "replace"),
                    seconds=time.perf_counter() - begun_s,
                )
        except TimeoutError:
            raise RequestFailed(f"{url} did not answer within {deadline_s:.3g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise RequestFailed(f"{url}: {type(error).__name__}: {error}") from error
