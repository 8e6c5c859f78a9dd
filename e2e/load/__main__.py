"""Replay a window of a recorded trace against one URL, or be users who think between requests."""

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
from load.connections import Connections
from load.generator import Generator, Limits
from load.messages import Message, Started, write
from load.retrying import Retries, Retrying
from load.traces import TraceError, load
from load.users import Users

NOT_STARTED, NOT_ALL_RIGHT = 2, 1
try:
    import uvloop
except ImportError:  # not in the image
    _LOOP = None
else:
    _LOOP = uvloop.new_event_loop


def main(argv: Sequence[str] | None = None) -> int:
    """Return 0 if every request got its right answer, 1 if not, 2 if nothing could be sent."""
    options = _parser().parse_args(argv)
    try:
        with asyncio.Runner(loop_factory=_LOOP) as runner:
            return runner.run(_send(options, _load(options)))
    except (TraceError, ReplayError, ValueError, aiohttp.ClientError, TimeoutError) as error:
        print(f"nothing was sent: {error or type(error).__name__}", file=sys.stderr)
        return NOT_STARTED


def _load(options: argparse.Namespace) -> tuple[float, ...] | Users:
    if options.users is not None:
        return Users(
            count=options.users,
            think_s=options.think,
            duration_s=options.duration,
            seed=options.seed,
        )
    replay = Replay(
        start_s=options.start,
        duration_s=options.duration,
        scale=options.scale,
        seed=options.seed,
        max_requests=options.max_requests,
    )
    return arrivals(load(options.trace), replay)


async def _send(options: argparse.Namespace, wanted: tuple[float, ...] | Users) -> int:
    connections = Connections(limit=options.connections, requests_each=options.connection_requests)
    retries = Retries(most=options.retries, backoff_s=options.backoff, patience_s=options.patience)
    limits = Limits(
        target_s=options.target, window_s=options.window, max_in_flight=options.max_in_flight
    )
    async with Client(
        options.url,
        options.model,
        timeout_s=options.timeout,
        max_connections=options.max_in_flight,
        connections=connections,
    ) as client:
        await client.learn_input()
        asker = client if retries == Retries() else Retrying(client, retries, seed=options.seed)
        generator = Generator(asker, wanted, limits, _say)
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, generator.stop)
        _say(
            Started(
                unix_s=time.time(),
                requests=None if isinstance(wanted, Users) else len(wanted),
                duration_s=options.duration,
                target_s=options.target,
            )
        )
        summary = await generator.run()
    print(summary.as_text(), file=sys.stderr)
    return 0 if summary.tally.missed == 0 else NOT_ALL_RIGHT


def _say(message: Message) -> None:
    sys.stdout.write(write(message) + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="load", description=__doc__, allow_abbrev=False)
    parser.add_argument("--url", required=True, help="scheme, host and port of the service")
    parser.add_argument("--model", required=True, help="name under which the model is served")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--trace", type=Path, help="open loop: trace file, csv or csv.gz")
    what.add_argument("--users", type=int, help="closed loop: users who wait for their answers")
    parser.add_argument("--think", type=float, default=1.0, help="users' mean pause, seconds")
    parser.add_argument("--start", type=float, default=0.0, help="window's start, seconds")
    parser.add_argument("--duration", required=True, type=float, help="window's length, seconds")
    parser.add_argument("--scale", type=float, default=1.0, help="requests sent per recorded one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", required=True, type=float, help="latency target, seconds")
    parser.add_argument("--window", type=float, default=10.0, help="report's windows, seconds")
    parser.add_argument("--timeout", type=float, default=30.0, help="per request, seconds")
    parser.add_argument("--max-requests", type=int, default=100_000)
    parser.add_argument("--max-in-flight", type=int, default=2000)
    _add_connections(parser)
    _add_retries(parser)
    return parser


def _add_connections(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("connections")
    group.add_argument(
        "--connections",
        type=int,
        help="keep-alive connections, and so most requests under way; the others wait for one",
    )
    group.add_argument(
        "--connection-requests",
        type=int,
        default=0,
        help="requests per connection: 0 keeps it, 1 opens one for each request",
    )


def _add_retries(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("retries")
    group.add_argument("--retries", type=int, default=0, help="tries after the first")
    group.add_argument(
        "--backoff", type=float, default=0.0, help="before the second try, doubled for each further"
    )
    group.add_argument(
        "--patience", type=float, help="seconds a try may take, its wait for a connection included"
    )


if __name__ == "__main__":
    sys.exit(main())
