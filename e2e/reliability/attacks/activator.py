"""The activator under attack, in a cgroup of the shipped size, with the operator's API here."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import yaml

from bench.figures import Figure, at_least, at_most, shown
from free_ports import free_port
from headroom.adapters.activator_api import ActivatorApi
from headroom.gateway import Endpoint
from headroom.gateway.activator_messages import Served
from load.operator_tls import ACTIVATOR, issued
from reliability.attacks.processes import Probes, running
from reliability.memory_cgroup import MIB, MemoryCgroup, bytes_of, memory_cgroup

MANIFEST = Path(__file__).parents[3] / "deploy" / "components" / "gateway" / "activator.yaml"
ATTACK_S, QUICK_S = 20.0, 4.0
CONNECTIONS = 3000
PROBE_WITHIN_S = 1.0
BODY_BYTES = 16 * MIB
VICTIM = "victim/v"
Say = Callable[[str], None]


def limit_bytes() -> int:
    """Return the activator's memory limit as shipped."""
    for one in yaml.safe_load_all(MANIFEST.read_text()):
        if one["kind"] == "Deployment":
            (container,) = one["spec"]["template"]["spec"]["containers"]
            return bytes_of(container["resources"]["limits"]["memory"])
    raise LookupError(f"{MANIFEST} must have a Deployment")


def _post(size: int, length: int) -> bytes:
    return b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (length, bytes(size))


ATTACKS: dict[str, tuple[int, Callable[[], bytes]]] = {
    "bodies": (100, lambda: _post(BODY_BYTES - 1000, BODY_BYTES - 1000)),
    "unfinished bodies": (100, lambda: _post(BODY_BYTES - 2000, BODY_BYTES - 1000)),
    "bytes behind a request": (100, lambda: _post(0, 0) + bytes(BODY_BYTES)),
    "heads": (CONNECTIONS, lambda: b"GET / HTTP/1.1\r\nx: " + b"y" * 60_000),
    "requests": (CONNECTIONS, lambda: _post(0, 0)),
    "silent connections": (CONNECTIONS, bytes),
    "HTTP/2": (CONNECTIONS // 4, lambda: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9)),
}
"""By name: connections for each of the hostile services, and what each sends."""
QUICK = ("bodies", "heads", "requests")


@dataclass(slots=True)
class Outcome:
    """What became of the activator."""

    kills: int = 0
    peak_bytes: int = 0
    refused: int = 0
    """Requests of the victim that did not reach its replica."""
    answered: int = 0
    waited_s: dict[str, float] = field(default_factory=dict)
    """The slowest probe by attack."""


async def survive(names: Sequence[str], seconds: float) -> Outcome:
    """Attack one activator in every way that is named."""
    found = Outcome()
    with memory_cgroup(limit_bytes()) as cgroup, tempfile.TemporaryDirectory() as folder:
        async with _replica() as (replica, accepted), _stage(cgroup, Path(folder)) as stage:
            hostile = [(f"hostile-{n}/h", free_port()) for n in range(4)]
            victim = free_port()
            for name in names:
                stage.desk.publish(
                    [_served(key, port) for key, port in hostile] + [_served(VICTIM, victim)]
                )
                await _until_open([*(port for _, port in hostile), victim])
                probes = Probes("127.0.0.1", stage.port, "/livez", "/readyz")
                async with probes.during(), _flood([port for _, port in hostile], name):
                    await asyncio.sleep(seconds / 2)
                    asked = asyncio.create_task(_asked(victim))
                    # the victim's replica becomes warm, and those of the hostile ones, which
                    # accept connections and never read
                    await asyncio.sleep(0.5)
                    stage.desk.publish(
                        [_served(key, port, accepted) for key, port in hostile]
                        + [_served(VICTIM, victim, replica)]
                    )
                    await asyncio.sleep(seconds / 2)
                    found.answered += await asked
                    found.refused += 1 - asked.result()
                found.waited_s[name] = max(probes.waited_s)
                found.kills = max(cgroup.kills, int(stage.process.returncode is not None))
                if found.kills:
                    break
                found.peak_bytes = cgroup.peak_bytes(stage.process.pid)
    return found


async def measure(seconds: float, only: str, *, quick: bool, say: Say) -> Sequence[Figure]:
    """Attack in every way, and compare."""
    names = [one for one in (QUICK if quick else ATTACKS) if only in f"activator: {one}"]
    found = await survive(names, seconds)
    slowest, slowest_s = max(found.waited_s.items(), key=lambda item: item[1], default=("", 0.0))
    for name, waited_s in found.waited_s.items():
        if waited_s > PROBE_WITHIN_S:
            say(f"activator, {name}: a probe waited {waited_s:.1f} s")
    return (
        shown(f"attacks of {seconds:g} s on four services", f"{len(found.waited_s)}"),
        at_most("kills for memory", found.kills, 0, "", 0),
        shown("most memory", f"{found.peak_bytes / MIB:.0f} of {limit_bytes() / MIB:.0f} MiB"),
        at_least("requests of another service answered", found.answered, len(names), "", 0),
        at_most(f"slowest probe ({slowest})", slowest_s, PROBE_WITHIN_S, " s", 2),
    )


@dataclass(frozen=True, slots=True)
class _Stage:
    desk: ActivatorApi
    process: asyncio.subprocess.Process
    port: int


@contextlib.asynccontextmanager
async def _stage(cgroup: MemoryCgroup, folder: Path) -> AsyncIterator[_Stage]:
    async def authenticate(_: str, __: str) -> bool:
        return True

    tls, named = issued(folder)
    desk = ActivatorApi(authenticate, hold_s=0.5, tls=tls, peer=ACTIVATOR)
    desk_port, port = free_port(), free_port()
    desk.publish([])
    token = folder / "token"
    token.write_text("token")
    serving = asyncio.create_task(desk.serve(desk_port, "127.0.0.1"))
    words = ["headroom", "activator", "--operator", f"https://127.0.0.1:{desk_port}", *named]
    words += ["--address", "127.0.0.1", "--token-file", str(token), "--port", str(port)]
    try:
        async with running(*words, prefix=cgroup.prefix) as process:
            await _until_open([port])
            yield _Stage(desk, process, port)
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


def _served(key: str, port: int, *replicas: Endpoint) -> Served:
    return Served(
        key=key,
        port=port,
        timeout_s=300.0,
        max_body_bytes=BODY_BYTES,
        cold_start_s=None,
        in_flight=64,
        replicas=replicas,
    )


class _Silent(asyncio.Protocol):
    """A connection that is accepted and never read."""

    def __init__(self, opened: set[asyncio.Transport]) -> None:
        self._opened = opened

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Read nothing."""
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        self._opened.add(transport)


@contextlib.asynccontextmanager
async def _replica() -> AsyncIterator[tuple[Endpoint, Endpoint]]:
    """Listen as a replica that answers, and as one that accepts and reads nothing."""

    async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split()[0]))
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            await writer.drain()
        writer.close()

    loop, opened = asyncio.get_running_loop(), set[asyncio.Transport]()
    good = await asyncio.start_server(answers, "127.0.0.1", 0)
    silent = await loop.create_server(lambda: _Silent(opened), "127.0.0.1", 0, backlog=4096)
    async with good, silent:
        ports = [one.sockets[0].getsockname()[1] for one in (good, silent)]
        try:
            yield Endpoint("127.0.0.1", ports[0]), Endpoint("127.0.0.1", ports[1])
        finally:
            for transport in opened:
                transport.abort()
            await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def _flood(ports: Sequence[int], name: str) -> AsyncIterator[None]:
    count, payload = ATTACKS[name]
    data = payload()
    tasks = [
        asyncio.create_task(_client(port, data)) for port in ports for _ in range(count // 4 + 1)
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _client(port: int, data: bytes) -> None:
    """Send as fast as the activator reads, and stay; again where it closes."""
    while True:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                for at in range(0, len(data), MIB):
                    writer.write(data[at : at + MIB])
                    await writer.drain()
                await reader.read()
            finally:
                writer.transport.abort()
        await asyncio.sleep(0.2)


async def _asked(port: int) -> int:
    """Return 1 if the victim's request was answered by its replica."""
    timeout = aiohttp.ClientTimeout(total=30.0)
    url = f"http://127.0.0.1:{port}/"
    async with aiohttp.ClientSession(timeout=timeout) as http:
        try:
            async with http.post(url, data=bytes(1 << 20)) as answer:
                return int(answer.status == 200)
        except (aiohttp.ClientError, TimeoutError):
            return 0


async def _until_open(ports: Sequence[int]) -> None:
    """Wait until every port accepts connections."""
    for port in ports:
        async with asyncio.timeout(60.0):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0.05)
                    continue
                writer.close()
                break
