"""CPU of the generating front compared with a bare ASGI stream, and of the scheduler.

Both servers run at once, each in a process of its own, with the same emulated device, and are
loaded in turn by the same closed loop. Seconds are those of the event loop's thread: the device
thread, which only sleeps here, is no part of a front.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
from collections.abc import Sequence
from pathlib import Path

import orjson

from bench import generation_loop
from bench.figures import Figure, at_most, shown
from bench.server_overhead import Server, started
from free_ports import free_port

STEP_S = 0.002
CLIENTS = 16
SECONDS = 3.0
ROUNDS = 5
LONG_TOKENS = 100
END = b"0\r\n\r\n"
PROMPT = "Tell me a story about a fox please."
MOST_TIMES_BARE = 1.2
MOST_TOKEN_US = 25.0


def measure() -> Sequence[Figure]:
    """Return the figures of this machine."""
    bare_port, port = free_port(), free_port()
    settings = {
        "HEADROOM_ENGINE": "generation-emulated",
        "HEADROOM_HOST": "127.0.0.1",
        "HEADROOM_PORT": str(port),
        "HEADROOM_EMULATED_FIXED_COST_S": str(STEP_S),
        "HEADROOM_EMULATED_PER_ITEM_COST_S": "0",
        "HEADROOM_EMULATED_LOAD_S": "0",
        "HEADROOM_CONNECTION_MAX_AGE_S": "3600",
        "HEADROOM_DRAIN_DELAY_S": "0",
    }
    with (
        started(
            ["-m", "bench.generation_bare", str(bare_port), str(STEP_S)], bare_port, ""
        ) as bare,
        started(["-m", "headroom_server"], port, "/v2/health/ready", **settings) as server,
    ):
        for each in (bare, server):
            _cpu_us(each, 1, 1.0)
        short = [(_cpu_us(bare, 1), _cpu_us(server, 1)) for _ in range(ROUNDS)]
        long = [(_cpu_us(bare, LONG_TOKENS), _cpu_us(server, LONG_TOKENS)) for _ in range(ROUNDS)]
    one = [statistics.median(column) for column in zip(*short, strict=True)]
    many = [statistics.median(column) for column in zip(*long, strict=True)]
    token_us = (many[1] - one[1]) / (LONG_TOKENS - 1)
    bare_us = (many[0] - one[0]) / (LONG_TOKENS - 1)
    return [
        shown("a request with one token: bare; ours", f"{one[0]:.0f}; {one[1]:.0f} us"),
        shown(
            f"a request with {LONG_TOKENS} tokens: bare; ours", f"{many[0]:.0f}; {many[1]:.0f} us"
        ),
        shown("a further token: bare; ours", f"{bare_us:.1f}; {token_us:.1f} us"),
        at_most(
            "CPU of a request with one token, against a bare ASGI stream",
            statistics.median(ours / bare for bare, ours in short),
            MOST_TIMES_BARE,
            "x",
            2,
        ),
        at_most("CPU of the front per further token", token_us, MOST_TOKEN_US, " us", 1),
        *generation_loop.measure(),
    ]


def _cpu_us(server: Server, tokens: int, seconds: float = SECONDS) -> float:
    before_s = _loop_cpu_s(server)
    answered = asyncio.run(_load(server.port, tokens, seconds))
    return (_loop_cpu_s(server) - before_s) / answered * 1e6


def _loop_cpu_s(server: Server) -> float:
    pid = server.process.pid
    schedstat = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text(encoding="ascii")
    return int(schedstat.split()[0]) / 1e9


async def _load(port: int, tokens: int, seconds: float) -> int:
    """Return how many streams `CLIENTS` connections received, one after the other on each."""
    fields = {"model": "model", "prompt": PROMPT, "max_tokens": tokens, "stream": True}
    body = orjson.dumps(fields)
    request = (
        b"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n%b" % (len(body), body)
    )
    answered = 0

    async def client() -> None:
        nonlocal answered
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.closing(writer):
            while True:
                writer.write(request)
                head = await reader.readuntil(b"\r\n")
                if b" 200 " not in head:
                    raise RuntimeError(f"the stream must be 200; got {head!r}")
                await reader.readuntil(END)
                answered += 1

    tasks = [asyncio.create_task(client()) for _ in range(CLIENTS)]
    done, _ = await asyncio.wait(tasks, timeout=seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
    return answered
