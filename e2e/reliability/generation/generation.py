"""A generating server for minutes: readers, leavers, malformed bodies, clients that do not read.

The device is emulated. Every client that sends a valid request waits for the head of its response,
so that the server has received exactly as many requests as were sent.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Mapping, Sequence

from bench.figures import Figure, at_least, at_most, shown
from bench.processes import Process
from free_ports import free_port
from reliability.attacks.processes import running
from reliability.generation.generation_accounts import USED_BLOCKS, Accounts, metrics_page, settled
from reliability.generation.generation_clients import (
    STEP_S,
    UNREAD_TOKENS,
    asked,
    client,
    connected,
    does_not_read,
    leaves,
    malformed,
    reads,
)
from reliability.testbed.memory_cgroup import MIB, memory_cgroup

TITLE = "A server of generated text: leavers, malformed bodies, slow readers"
MINUTES = 10.0
LIMIT_BYTES = 384 * MIB
CLIENTS = 48
"""A quarter of each kind."""
UNREAD_MB = 64.0
"""Memory of hundreds of streams: a connection with its request takes some 50 kB, unread text 1 MiB
in all, and uvloop up to 16 KiB for each before a stream is paused."""
MOST_GROWTH = 1.02
SETTINGS: Mapping[str, str] = {
    "HEADROOM_ENGINE": "generation-emulated",
    "HEADROOM_HOST": "127.0.0.1",
    "HEADROOM_EMULATED_LOAD_S": "0",
    "HEADROOM_EMULATED_FIXED_COST_S": str(STEP_S),
    "HEADROOM_EMULATED_PER_ITEM_COST_S": "0",
    "HEADROOM_MAX_UNREAD_BYTES": str(MIB),
    "HEADROOM_UNREAD_TIMEOUT_S": "2",
    "HEADROOM_WARMUP_MAX_LATENCY_S": "30",
}


async def soak(seconds: float, clients: int = CLIENTS) -> Accounts:
    """Run a server and its clients, and return what both counted."""
    accounts, port = Accounts(), free_port()
    env = {**SETTINGS, "HEADROOM_PORT": str(port)}
    with memory_cgroup(LIMIT_BYTES) as cgroup:
        async with running("headroom_server", prefix=cgroup.prefix, env=env) as process:
            await metrics_page(port)
            kinds = (reads, leaves, malformed, does_not_read)
            over = asyncio.Event()
            tasks = [
                asyncio.create_task(client(kinds[number % 4], port, number, accounts.seen, over))
                for number in range(clients)
            ]
            server = Process(process.pid)
            for _ in range(max(10, int(seconds))):
                await asyncio.sleep(seconds / max(10, int(seconds)))
                accounts.memory_mb.append(server.rss_mb)
            over.set()
            await asyncio.gather(*tasks)
            accounts.page = await settled(port)
            accounts.kills = cgroup.kills
    return accounts


async def unread(streams: int, seconds: float) -> Accounts:
    """Open streams that are not read; `memory_mb` begins before them."""
    accounts, port = Accounts(), free_port()
    env = {**SETTINGS, "HEADROOM_PORT": str(port), "HEADROOM_MAX_SEQUENCES": str(streams)}
    with memory_cgroup(LIMIT_BYTES) as cgroup:
        async with running("headroom_server", prefix=cgroup.prefix, env=env) as process:
            await metrics_page(port)
            server, over = Process(process.pid), asyncio.Event()
            accounts.memory_mb.append(server.rss_mb)

            async def hold() -> None:
                async with connected(port, receive_bytes=4096) as (reader, writer):
                    if await asked(reader, writer, accounts.seen, UNREAD_TOKENS, logprobs=5):
                        await over.wait()

            tasks = [asyncio.create_task(hold()) for _ in range(streams)]
            for _ in range(10):
                await asyncio.sleep(seconds / 10)
                accounts.memory_mb.append(server.rss_mb)
            over.set()
            await asyncio.gather(*tasks)
            accounts.page, accounts.kills = await settled(port), cgroup.kills
    return accounts


def figures(accounts: Accounts) -> Sequence[Figure]:
    """Return the figures of a run."""
    seen = accounts.seen
    return [
        shown("requests; read to the end; left; unread", f"{seen['sent']}; {seen['complete']}; "
              f"{seen['left']}; {seen['unread']}"),
        at_least("malformed bodies answered with 400", seen["malformed"], 1, "", 0),
        shown("memory at the end", f"{accounts.memory_mb[-1]:.0f} MB"),
        at_most("memory, end against the first quarter", accounts.growth, MOST_GROWTH, "x", 3),
        at_most("blocks leaked", accounts.page[USED_BLOCKS], 0, ""),
        at_most("accounts that do not agree", len(accounts.wrongs()), 0, "", 0),
        at_most("kills for memory", accounts.kills, 0, "", 0),
    ]  # fmt: skip


def show(given: argparse.Namespace, say: Callable[[str], None]) -> Sequence[Figure]:
    """Measure for the minutes of the command line."""
    accounts = asyncio.run(soak(60.0 * given.generation_minutes))
    for wrong in accounts.wrongs():
        say(wrong)
    return figures(accounts)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    words = "minutes of the generating server's soak"
    parser.add_argument("--generation-minutes", type=float, default=MINUTES, help=words)
