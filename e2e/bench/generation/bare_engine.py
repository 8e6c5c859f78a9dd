"""Baseline: a bare ASGI application around Headroom's engine, with the work of any such server.

It parses the body, tokenizes the prompt, submits it to the same scheduler and emulated device,
detokenizes, and sends an event per token. There are no checks, no options, no deadlines, no stop
strings, no bounds on streams that are not read, no accounts, no metrics and no drain.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from typing import Any

import orjson

from bench.generation.bare import HEADERS
from bench.server.bare_uvicorn import body_of, serve
from headroom_server.generation.emulated import EmulatedCosts, EmulatedExecutor
from headroom_server.generation.loop.engine import LoopEngine
from headroom_server.generation.ports import WarmEngine
from headroom_server.generation.text.tokenizer import ByteTokenizer
from headroom_server.generation.values import (
    Delivery,
    GenerationLimits,
    GenerationRequest,
    Sampling,
)
from headroom_server.lifecycle import Phase
from headroom_server.process import prompt_device_thread, quiet_garbage_collector

LIMITS = GenerationLimits(
    context_tokens=8192,
    vocabulary=258,
    blocks=4096,
    block_tokens=16,
    max_sequences=64,
    max_iteration_tokens=2048,
)
LETTERS = range(ord("a"), ord("z") + 1)


class Listener:
    """Learns when the engine is warm."""

    def __init__(self) -> None:
        self.warm = False

    def on_phase(self, phase: Phase, at_s: float) -> None:
        """Ignore it."""

    def on_warm(self, warm: WarmEngine) -> None:
        """The engine is ready."""
        self.warm = True

    def on_suspected(self, suspected: bool) -> None:
        """Ignore it."""

    def on_lost(self, message: str) -> None:
        """End the process: there is nothing to measure."""
        sys.exit(message)


class Application:
    """GET is answered with 200 once the engine is warm, POST with a stream."""

    def __init__(self, step_s: float) -> None:
        executor = EmulatedExecutor(LIMITS, EmulatedCosts(step_s, 0.0, 0.0), tokens=LETTERS)
        self._engine = LoopEngine("bare", executor, clock=time.monotonic, emulated=True)
        self._tokenizer = ByteTokenizer()
        self._listener: Listener | None = None
        self._keys = itertools.count(1)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if self._listener is None:
            self._listener = Listener()
            self._engine.start(asyncio.get_running_loop().call_soon_threadsafe, self._listener)
        if scope["method"] == "GET":
            status = 200 if self._listener.warm else 503
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        body = await body_of(receive)
        fields = orjson.loads(body)
        queue: asyncio.Queue[Delivery] = asyncio.Queue()
        key = next(self._keys)
        request = GenerationRequest(
            key=key,
            prompt=tuple(self._tokenizer.encode(fields["prompt"], special=True)),
            max_tokens=fields["max_tokens"],
            sampling=Sampling(temperature=fields.get("temperature", 1.0)),
            stop_tokens=self._tokenizer.eos_tokens,
            arrived_s=time.monotonic(),
        )
        self._engine.submit(request, queue.put_nowait)
        head = {
            "id": f"cmpl-{key}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": fields["model"],
        }
        detokenizer, started, finish = self._tokenizer.detokenizer(), False, None
        while finish is None:
            delivery = await queue.get()
            finish = delivery.finish
            if not started:
                started = True
                await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            text = detokenizer.push([one.token for one in delivery.tokens])
            choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
            event = b"data: %b\n\n" % orjson.dumps(head | {"choices": [choice]})
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})


if __name__ == "__main__":
    prompt_device_thread()
    quiet_garbage_collector()
    serve(Application(float(sys.argv[2])), int(sys.argv[1]))
