"""Baseline: a bare ASGI application that streams tokens, on uvicorn with the same loop and parser.

A thread sleeps for the device and hands the tokens of an iteration to the loop in one call; each
stream sends an event per token. There are no checks, no tokenizer, no scheduling, no deadlines, no
bounds on streams that are not read, no metrics and no drain.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

import orjson

from bench.server.bare_uvicorn import body_of, serve

HEADERS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]


class Sequences:
    """Requests that are generated together, a token each per iteration."""

    def __init__(self, step_s: float) -> None:
        self._step_s = step_s
        self._changed = threading.Condition()
        self._left: dict[asyncio.Queue[bool], int] = {}
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._run, daemon=True).start()

    def add(self, tokens: int) -> asyncio.Queue[bool]:
        """Return where each token appears; the last one is True."""
        queue: asyncio.Queue[bool] = asyncio.Queue()
        with self._changed:
            self._left[queue] = tokens
            self._changed.notify()
        return queue

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._left))
                batch = list(self._left)
            time.sleep(self._step_s)
            tokens: list[tuple[asyncio.Queue[bool], bool]] = []
            with self._changed:
                for queue in batch:
                    self._left[queue] -= 1
                    last = not self._left[queue]
                    tokens.append((queue, last))
                    if last:
                        del self._left[queue]
            self._loop.call_soon_threadsafe(_deliver, tokens)


def _deliver(tokens: Sequence[tuple[asyncio.Queue[bool], bool]]) -> None:
    for queue, last in tokens:
        queue.put_nowait(last)


class Application:
    """GET is answered with nothing, POST with a stream."""

    def __init__(self, step_s: float) -> None:
        self._step_s = step_s
        self._sequences: Sequences | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["method"] == "GET":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        if self._sequences is None:
            self._sequences = Sequences(self._step_s)
        body = await body_of(receive)
        fields = orjson.loads(body)
        queue = self._sequences.add(fields["max_tokens"])
        head = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": fields["model"]}
        last = started = False
        while not last:
            last = await queue.get()
            if not started:
                started = True
                await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            choice = {
                "index": 0,
                "text": "a",
                "logprobs": None,
                "finish_reason": "length" if last else None,
            }
            event = b"data: %b\n\n" % orjson.dumps(head | {"choices": [choice]})
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})


if __name__ == "__main__":
    serve(Application(float(sys.argv[2])), int(sys.argv[1]))
