"""Replay a window of a recorded trace against one URL, open loop."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import aiohttp

from load.arrivals import Replay, ReplayError, arrivals
from load.client import Client
from load.generator import Generator, Limits
from load.messages import Message, Started, write
from load.traces import TraceError, load

NOT_STARTED, NOT_ALL_RIGHT = 2, 1


def main(argv: Sequence[str] | None = None) -> int:
    """Return 0 if every request got its right answer, 1 if not, 2 if nothing could be sent."""
    options = _parser().parse_args(argv)
    replay = Replay(
        start_s=options.start,
        duration_s=options.duration,
        scale=options.scale,
        seed=options.seed,
        max_requests=options.max_requests,
    )
    try:
        due_s = arrivals(load(options.trace), replay)
        return asyncio.run(_replay(options, due_s))
    except (TraceError, ReplayError, ValueError, aiohttp.ClientError, TimeoutError) as error:
        print(f"nothing was sent: {error or type(error).__name__}", file=sys.stderr)
        return NOT_STARTED


async def _replay(options: argparse.Namespace, due_s: tuple[float, ...]) -> int:
    limits = Limits(
        target_s=options.target, window_s=options.window, max_in_flight=options.max_in_flight
    )
    async with Client(
        options.url,
        options.model,
        timeout_s=options.timeout,
        max_connections=options.max_in_flight,
    ) as client:
        await client.learn_input()
        generator = Generator(client, due_s, limits, _say)
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, generator.stop)
        _say(
            Started(
                unix_s=time.time(),
                requests=len(due_s),
                duration_s=options.duration,
                target_s=options.target,
            )
        )
        summary = await generator.run()
    return 0 if summary.tally.missed == 0 else NOT_ALL_RIGHT


def _say(message: Message) -> None:
    sys.stdout.write(write(message) + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="load", description=__doc__, allow_abbrev=False)
    parser.add_argument("--url", required=True, help="scheme, host and port of the service")
    parser.add_argument("--model", required=True, help="name under which the model is served")
    parser.add_argument("--trace", required=True, type=Path, help="trace file, csv or csv.gz")
    parser.add_argument("--start", type=float, default=0.0, help="window's start, seconds")
    parser.add_argument("--duration", required=True, type=float, help="window's length, seconds")
    parser.add_argument("--scale", type=float, default=1.0, help="requests sent per recorded one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", required=True, type=float, help="latency target, seconds")
    parser.add_argument("--window", type=float, default=10.0, help="report's windows, seconds")
    parser.add_argument("--timeout", type=float, default=30.0, help="per request, seconds")
    parser.add_argument("--max-requests", type=int, default=100_000)
    parser.add_argument("--max-in-flight", type=int, default=2000)
    return parser


if __name__ == "__main__":
    sys.exit(main())
