"""CPU of the generating front compared with bare ASGI streams, and of the scheduler.

The bound is against a bare ASGI stream that does the same job: it parses, tokenizes, and generates
with Headroom's engine. One that does nothing but count down tokens is measured for scale.

All servers run at once, each in a process of its own, with the same emulated device, and are
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

from bench.figures import Figure, at_most, shown
from bench.generation import loop as generation_loop
from bench.server.overhead import Server, started
from free_ports import free_port

STEP_S = 0.002
CLIENTS = 16
SECONDS = 3.0
ROUNDS = 5
LONG_TOKENS = 100
ANSWER_TOKENS = 211
"""The mean of Azure's conversations of 2023."""
END = b"0\r\n\r\n"
PROMPT = "Tell me a story about a fox please."
MOST_TIMES_BARE = 1.2
MOST_TOKEN_US = 25.0


def measure() -> Sequence[Figure]:
    """Return the figures of this machine."""
    return [*_figures(_measured_us()), *generation_loop.measure()]


def _measured_us() -> dict[int, list[list[float]]]:
    """Return CPU per request, by tokens of its answer: a row per round, a column per server."""
    bare_port, engine_port, port = free_port(), free_port(), free_port()
    settings = {
        "HEADROOM_ENGINE": "generation-emulated",
        "HEADROOM_HOST": "127.0.0.1",
        "HEADROOM_PORT": str(port),
        "HEADROOM_EMULATED_FIXED_COST_S": str(STEP_S),
        "HEADROOM_EMULATED_PER_ITEM_COST_S": "0",
        "HEADROOM_EMULATED_PER_TOKEN_COST_S": "0",
        "HEADROOM_EMULATED_LOAD_S": "0",
        "HEADROOM_CONNECTION_MAX_AGE_S": "3600",
        "HEADROOM_DRAIN_DELAY_S": "0",
    }
    with (
        started(
            ["-m", "bench.generation.bare", str(bare_port), str(STEP_S)], bare_port, ""
        ) as bare,
        started(
            ["-m", "bench.generation.bare_engine", str(engine_port), str(STEP_S)], engine_port, ""
        ) as engine,
        started(["-m", "headroom_server"], port, "/v2/health/ready", **settings) as server,
    ):
        servers = (bare, engine, server)
        for each in servers:
            _cpu_us(each, 1, 1.0)
        return {
            tokens: [[_cpu_us(each, tokens, seconds) for each in servers] for _ in range(ROUNDS)]
            for tokens, seconds in ((1, SECONDS), (LONG_TOKENS, 2 * SECONDS))
        }


def _figures(runs: dict[int, list[list[float]]]) -> Sequence[Figure]:
    usual = {
        tokens: [statistics.median(column) for column in zip(*rows, strict=True)]
        for tokens, rows in runs.items()
    }
    token_us = [
        (many - one) / (LONG_TOKENS - 1)
        for one, many in zip(usual[1], usual[LONG_TOKENS], strict=True)
    ]
    answers = [
        [
            one + (ANSWER_TOKENS - 1) * (many - one) / (LONG_TOKENS - 1)
            for one, many in zip(short, long, strict=True)
        ]
        for short, long in zip(runs[1], runs[LONG_TOKENS], strict=True)
    ]
    return [
        *(
            shown(
                f"a request with {tokens} tokens: counting; bare with our engine; ours",
                "; ".join(f"{one:.0f}" for one in columns) + " us",
            )
            for tokens, columns in usual.items()
        ),
        shown(
            "a further token: counting; bare with our engine; ours",
            "; ".join(f"{one:.1f}" for one in token_us) + " us",
        ),
        at_most(
            f"CPU of a request of {ANSWER_TOKENS} tokens, against a bare ASGI stream",
            _times(answers, 1),
            MOST_TIMES_BARE,
            "x",
            2,
        ),
        shown("the same, against one that only counts", f"{_times(answers, 0):.2f}x"),
        shown(
            "one token, against a bare ASGI stream; one that only counts",
            f"{_times(runs[1], 1):.2f}x; {_times(runs[1], 0):.2f}x",
        ),
        at_most("CPU of the front per further token", token_us[2], MOST_TOKEN_US, " us", 1),
    ]


def _times(rows: Sequence[Sequence[float]], base: int) -> float:
    """Return the CPU of Headroom's server relative to a baseline's, by round."""
    return statistics.median(row[2] / row[base] for row in rows)


def _cpu_us(server: Server, tokens: int, seconds: float) -> float:
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
    while not (done or answered):  # a crowded machine
        done, _ = await asyncio.wait(tasks, timeout=seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
    return answered
