"""Baselines: bare ASGI applications on uvicorn with the same loop, parser and JSON library.

`batching` does the model server's job in the fewest lines: it sums rows in batches of what waits,
on the sleeping device. `padded` does so for rows of several lengths, first come, first served, and
each batch takes as long as if all its rows were as long as the longest. `instant` answers at once
and does no such job. None has a framework, checks, bounds, metrics or a drain.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson

from bench.server.bare_uvicorn import body_of, serve
from serverbench.peers.sleeping import MAX_BATCH_SIZE, Device

Rows = list[list[float]]
Answer = Callable[[Rows], Awaitable[list[float]]]


async def at_once(rows: Rows) -> list[float]:
    """Return the sums at once: there is no device."""
    return [float(sum(row)) for row in rows]


class Batches:
    """Requests of one row, executed together while a thread sleeps for the device."""

    def __init__(self, *, padded: bool = False) -> None:
        self._padded = padded
        self._sleeper = Device()
        self._waiting: list[tuple[Rows, asyncio.Future[list[float]]]] = []
        self._device = ThreadPoolExecutor(1)
        self._busy = False

    async def __call__(self, rows: Rows) -> list[float]:
        """Wait for a batch."""
        answer: asyncio.Future[list[float]] = asyncio.get_running_loop().create_future()
        self._waiting.append((rows, answer))
        if not self._busy:
            self._start()
        return await answer

    def _start(self) -> None:
        batch = self._waiting[:MAX_BATCH_SIZE]
        self._waiting = self._waiting[MAX_BATCH_SIZE:]
        self._busy = bool(batch)
        if batch:
            loop = asyncio.get_running_loop()
            longest = max(len(rows[0]) for rows, _ in batch) if self._padded else 0
            done = loop.run_in_executor(self._device, self._sleeper.spend, len(batch), longest)
            done.add_done_callback(lambda _: self._finish(batch))

    def _finish(self, batch: list[tuple[Rows, asyncio.Future[list[float]]]]) -> None:
        for rows, answer in batch:
            answer.set_result([float(sum(row)) for row in rows])
        self._start()


def application(answer: Answer) -> Callable[[Any, Any, Any], Awaitable[None]]:
    """GET is answered with nothing, POST with the sums of its instances."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] == "GET":
            await _send(send, b"{}")
            return
        body = await body_of(receive)
        sums = await answer(orjson.loads(body)["instances"])
        await _send(send, orjson.dumps({"predictions": sums}))

    return app


async def _send(send: Any, answer: bytes) -> None:
    headers = [
        (b"content-length", str(len(answer)).encode()),
        (b"content-type", b"application/json"),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


ANSWERS: dict[str, Callable[[], Answer]] = {
    "instant": lambda: at_once,
    "batching": Batches,
    "padded": lambda: Batches(padded=True),
}

if __name__ == "__main__":
    serve(application(ANSWERS[sys.argv[1]]()), int(sys.argv[2]))
