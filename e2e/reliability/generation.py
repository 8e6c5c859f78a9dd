"""A generating server for minutes: readers, leavers, malformed bodies, clients that do not read.

The device is emulated. Every client that sends a valid request waits for the head of its response,
so that the server has received exactly as many requests as were sent.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import socket
import statistics
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import aiohttp
import orjson

from bench.figures import Figure, at_least, at_most, shown
from bench.processes import Process
from free_ports import free_port
from reliability.attacks.processes import running
from reliability.memory_cgroup import MIB, memory_cgroup

TITLE = "A server of generated text: leavers, malformed bodies, slow readers"
MINUTES = 10.0
LIMIT_BYTES = 384 * MIB
CLIENTS = 48
"""A quarter of each kind."""
STEP_S = 0.004
MOST_TOKENS = 120
UNREAD_TOKENS = 4000
UNREAD_S = 4.0
UNREAD_MB = 64.0
"""Memory of hundreds of streams: a connection with its request takes some 50 kB, unread text 1 MiB
in all, and uvloop up to 16 KiB for each before a stream is paused."""
SETTLE_SHARE, LAST_SHARE = 0.25, 0.1
"""Memory is compared between the tenth after the first quarter and the last tenth."""
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
SETTLE_TRIES, SETTLE_PAUSE_S = 100, 0.3
RUNNING = 'headroom_requests_running{model="model"}'
USED_BLOCKS = 'headroom_kv_blocks{model="model",state="used"}'
MALFORMED = (b"{", b'{"model":"model"}', b'{"model":"model","prompt":"a","max_token":1}', b"\xff")


@dataclass(slots=True)
class Books:
    """What the clients saw, and what the server says about it."""

    seen: Counter[str] = field(default_factory=Counter)
    memory_mb: list[float] = field(default_factory=list)
    page: Mapping[str, float] = field(default_factory=dict)
    kills: int = 0

    def wrongs(self) -> Sequence[str]:
        """Return the accounts that do not agree."""
        page = self.page
        outcomes = {
            name: page[f'headroom_requests_total{{model="model",outcome="{name}"}}']
            for name in ("ok", "refused", "expired", "cancelled", "failed")
        }
        received = page['headroom_requests_received_total{model="model"}']
        checks = {
            "received as many as were sent": received == self.seen["sent"],
            "every request has one outcome": received == sum(outcomes.values()),
            "complete answers are ok": outcomes["ok"] >= self.seen["complete"],
            "refusals are those that clients saw": outcomes["refused"] == self.seen["refused"],
            "none failed": outcomes["failed"] == 0 == self.seen["broken"],
            "nothing waits or runs": page[RUNNING] == 0,
            "no block is held": page[USED_BLOCKS] == 0,
        }
        return [
            f"{name}: {outcomes}, {dict(self.seen)}" for name, is_so in checks.items() if not is_so
        ]

    @property
    def growth(self) -> float:
        """Memory at the end in relation to that after the first quarter."""
        count = len(self.memory_mb)
        window = max(1, int(LAST_SHARE * count))
        first = int(SETTLE_SHARE * count)
        early = statistics.median(self.memory_mb[first : first + window])
        return statistics.median(self.memory_mb[-window:]) / early


async def soak(seconds: float, clients: int = CLIENTS) -> Books:
    """Run a server and its clients, and return the books."""
    books, port = Books(), free_port()
    env = {**SETTINGS, "HEADROOM_PORT": str(port)}
    with memory_cgroup(LIMIT_BYTES) as cgroup:
        async with running("headroom_server", prefix=cgroup.prefix, env=env) as process:
            await _page(port)
            kinds = (_reads, _leaves, _malformed, _does_not_read)
            over = asyncio.Event()
            tasks = [
                asyncio.create_task(_client(kinds[number % 4], port, number, books.seen, over))
                for number in range(clients)
            ]
            server = Process(process.pid)
            for _ in range(max(10, int(seconds))):
                await asyncio.sleep(seconds / max(10, int(seconds)))
                books.memory_mb.append(server.rss_mb)
            over.set()
            await asyncio.gather(*tasks)
            books.page = await _settled(port)
            books.kills = cgroup.kills
    return books


async def unread(streams: int, seconds: float) -> Books:
    """Open streams that are not read; `memory_mb` begins before them."""
    books, port = Books(), free_port()
    env = {**SETTINGS, "HEADROOM_PORT": str(port), "HEADROOM_MAX_SEQUENCES": str(streams)}
    with memory_cgroup(LIMIT_BYTES) as cgroup:
        async with running("headroom_server", prefix=cgroup.prefix, env=env) as process:
            await _page(port)
            server, over = Process(process.pid), asyncio.Event()
            books.memory_mb.append(server.rss_mb)

            async def hold() -> None:
                async with _connected(port, receive_bytes=4096) as (reader, writer):
                    if await _asked(reader, writer, books.seen, UNREAD_TOKENS, logprobs=5):
                        await over.wait()

            tasks = [asyncio.create_task(hold()) for _ in range(streams)]
            for _ in range(10):
                await asyncio.sleep(seconds / 10)
                books.memory_mb.append(server.rss_mb)
            over.set()
            await asyncio.gather(*tasks)
            books.page, books.kills = await _settled(port), cgroup.kills
    return books


def figures(books: Books) -> Sequence[Figure]:
    """Return the figures of a run."""
    seen = books.seen
    return [
        shown("requests; read to the end; left; unread", f"{seen['sent']}; {seen['complete']}; "
              f"{seen['left']}; {seen['unread']}"),
        at_least("malformed bodies answered with 400", seen["malformed"], 1, "", 0),
        shown("memory at the end", f"{books.memory_mb[-1]:.0f} MB"),
        at_most("memory, end against the first quarter", books.growth, MOST_GROWTH, "x", 3),
        at_most("blocks leaked", books.page[USED_BLOCKS], 0, ""),
        at_most("accounts that do not agree", len(books.wrongs()), 0, "", 0),
        at_most("kills for memory", books.kills, 0, "", 0),
    ]  # fmt: skip


def show(given: argparse.Namespace, say: Callable[[str], None]) -> Sequence[Figure]:
    """Measure for the minutes of the command line."""
    books = asyncio.run(soak(60.0 * given.generation_minutes))
    for wrong in books.wrongs():
        say(wrong)
    return figures(books)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    words = "minutes of the generating server's soak"
    parser.add_argument("--generation-minutes", type=float, default=MINUTES, help=words)


# ---- clients

Kind = Callable[[int, random.Random, Counter[str]], Awaitable[None]]


async def _client(
    kind: Kind, port: int, seed: int, seen: Counter[str], over: asyncio.Event
) -> None:
    chance = random.Random(seed)
    while not over.is_set():
        await kind(port, chance, seen)


async def _reads(port: int, chance: random.Random, seen: Counter[str]) -> None:
    async with _connected(port) as (reader, writer):
        if await _asked(reader, writer, seen, chance.randrange(1, MOST_TOKENS)):
            rest = await reader.read()
            seen["complete" if rest.endswith(b"[DONE]\n\n\r\n0\r\n\r\n") else "broken"] += 1


async def _leaves(port: int, chance: random.Random, seen: Counter[str]) -> None:
    async with _connected(port) as (reader, writer):
        if await _asked(reader, writer, seen, MOST_TOKENS):
            await asyncio.sleep(STEP_S * chance.randrange(MOST_TOKENS // 2))
            seen["left"] += 1


async def _malformed(port: int, chance: random.Random, seen: Counter[str]) -> None:
    async with _connected(port) as (reader, writer):
        writer.write(_request(chance.choice(MALFORMED)))
        head = await reader.readuntil(b"\r\n")
        seen["malformed" if b" 400 " in head else "broken"] += 1
    await asyncio.sleep(0.02)


async def _does_not_read(port: int, chance: random.Random, seen: Counter[str]) -> None:
    async with _connected(port, receive_bytes=4096) as (reader, writer):
        if await _asked(reader, writer, seen, UNREAD_TOKENS):
            await asyncio.sleep(UNREAD_S * chance.random())
            seen["unread"] += 1


@contextlib.asynccontextmanager
async def _connected(
    port: int, receive_bytes: int = 0
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    plain = socket.socket()
    plain.setblocking(False)
    if receive_bytes:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=plain, limit=receive_bytes or 1 << 16)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def _asked(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    seen: Counter[str],
    tokens: int,
    **more: object,
) -> bool:
    """Send a valid request; return whether its stream has begun."""
    fields = {"model": "model", "prompt": "Tell me", "max_tokens": tokens, "stream": True, **more}
    seen["sent"] += 1
    writer.write(_request(orjson.dumps(fields)))
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 429 " in head.partition(b"\r\n")[0]:
        seen["refused"] += 1
    return b" 200 " in head.partition(b"\r\n")[0]


def _request(body: bytes) -> bytes:
    return (
        b"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
        b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    )


async def _settled(port: int) -> Mapping[str, float]:
    """Return the metrics when nothing runs, or what there is after half a minute."""
    page: Mapping[str, float] = {}
    for _ in range(SETTLE_TRIES):
        page = await _page(port)
        if not page[RUNNING] and not page[USED_BLOCKS]:
            break
        await asyncio.sleep(SETTLE_PAUSE_S)
    return page


async def _page(port: int) -> Mapping[str, float]:
    """Return the metrics without buckets, once the server answers."""
    async with aiohttp.ClientSession() as http, asyncio.timeout(60):
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                async with http.get(f"http://127.0.0.1:{port}/v2/health/ready") as ready:
                    if ready.status == 200:
                        break
            await asyncio.sleep(0.1)
        async with http.get(f"http://127.0.0.1:{port}/metrics") as answer:
            lines = [one for one in (await answer.text()).splitlines() if one[:1] != "#"]
    return {name: float(value) for name, _, value in (one.rpartition(" ") for one in lines)}
