"""A server of generated text under attack: the front, constraints of answers, streams.

The model is a small one of random weights, so that its tokenizer compiles real constraints. There
is no sample of a generating server; its limit is the arithmetic of `operator/guide/LIMITS.md`.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from bench.figures import Figure, at_least, at_most, shown
from free_ports import free_port
from headroom_server.repository.random_llama import write_random_llama
from reliability.attacks.generating_payloads import MODEL, PAYLOADS, QUICK
from reliability.attacks.processes import ELSEWHERE, Probes, running, until_ok
from reliability.testbed.memory_cgroup import MIB, MemoryCgroup, memory_cgroup

ATTACK_S, QUICK_S = 15.0, 4.0
CONNECTIONS = 200
LIMIT_BYTES = 1536 * MIB
"""Torch and a small model take 330 MiB; the bounds allow 64 MiB of arriving bytes, 96 of heads and
connections, 64 of unread text, and 190 + 256 + 128 + 32 + 2 x 70 + 165 of constraints."""
LIVE, READY = "/v2/health/live", "/v2/health/ready"
READY_WITHIN_S = 120.0
PROBE_WITHIN_S = 1.0
VICTIM_ADDRESS = "127.0.0.3"
VICTIM_EVERY_S = 0.5
VICTIM_WITHIN_S = 20.0
SETTINGS = {
    "HEADROOM_ENGINE": "generation",
    "HEADROOM_HOST": "0.0.0.0",
    "HEADROOM_MODEL_NAME": MODEL,
    "HEADROOM_CONTEXT_TOKENS": "2048",
    "HEADROOM_KV_CACHE_BYTES": str(64 * MIB),
    "HEADROOM_WARMUP_MAX_LATENCY_S": "30",
    "HEADROOM_TORCH_THREADS": "1",
}
VICTIMS: Mapping[str, Callable[[int], dict[str, object]]] = {
    "text": lambda _: {},
    "a constraint": lambda _: {"guided_regex": "[a-z]{1,8}"},
    "a new constraint": lambda number: {"guided_regex": f"[a-z]{{1,8}}{number}?"},
}
"""Requests of another client, by its number."""
Say = Callable[[str], None]


@dataclass(slots=True)
class Outcome:
    """The outcome for one server under all attacks."""

    kills: int = 0
    peak_bytes: int = 0
    waited_s: dict[str, float] = field(default_factory=dict)
    """The slowest probe by attack."""
    answered: dict[str, list[float]] = field(default_factory=dict)
    """Seconds of the answers to another client, by attack and kind."""
    refused: Counter[str] = field(default_factory=Counter)
    """Requests of that client without an answer, by attack, kind and reason."""


@dataclass(frozen=True, slots=True)
class Target:
    """A server that runs."""

    port: int
    pid: int


@asynccontextmanager
async def serving(cgroup: MemoryCgroup) -> AsyncIterator[Target]:
    """Run a server of a small model until the block ends."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        write_random_llama(model)
        own = {"HEADROOM_PORT": str(port), "HEADROOM_MODEL_URI": f"file://{model}"}
        env = {**SETTINGS, **own}
        async with running("headroom_server", prefix=cgroup.prefix, env=env) as process:
            await until_ok(f"http://127.0.0.1:{port}{READY}", READY_WITHIN_S)
            yield Target(port, process.pid)


async def survive(names: Sequence[str], seconds: float, connections: int = CONNECTIONS) -> Outcome:
    """Attack one server in every way that is named; stop when it is killed."""
    found = Outcome()
    with memory_cgroup(LIMIT_BYTES) as cgroup:
        async with serving(cgroup) as target:
            for name in names:
                await _attacked(target, name, seconds, connections, found)
                found.kills, found.peak_bytes = cgroup.kills_and_peak(target.pid, found.peak_bytes)
                if found.kills:
                    break
    return found


async def _attacked(
    target: Target, name: str, seconds: float, connections: int, found: Outcome
) -> None:
    words = [name, "127.0.0.1", str(target.port), str(connections), "0", "0"]
    probes = Probes("127.0.0.1", target.port, LIVE, READY)
    flood = running("reliability.attacks.flood", *words, prefix=ELSEWHERE)
    async with probes.during(), flood:
        await asyncio.gather(
            *(
                _victim(target.port, f"{name}: {kind}", asking, seconds, found)
                for kind, asking in VICTIMS.items()
            )
        )
    found.waited_s[name] = max(probes.waited_s)


async def _victim(
    port: int,
    key: str,
    asking: Callable[[int], dict[str, object]],
    seconds: float,
    found: Outcome,
) -> None:
    """Ask from an address of its own until the attack ends."""
    until_s = time.monotonic() + seconds
    connector = aiohttp.TCPConnector(local_addr=(VICTIM_ADDRESS, 0), force_close=True)
    timeout = aiohttp.ClientTimeout(total=VICTIM_WITHIN_S)
    url = f"http://127.0.0.1:{port}/v1/completions"
    answered = found.answered.setdefault(key, [])
    own: dict[str, Any] = {"connector": connector, "headers": {"x-tenant": "quiet"}}
    async with aiohttp.ClientSession(timeout=timeout, **own) as http:
        for number in itertools.count():
            begun_s = time.monotonic()
            if begun_s >= until_s:
                break
            body = {"model": MODEL, "prompt": "Tell me", "max_tokens": 8, **asking(number)}
            try:
                async with http.post(url, json=body) as answer:
                    said = await answer.text()
                    why = "" if answer.status == 200 else f"{answer.status}, {said:.120}"
            except (aiohttp.ClientError, TimeoutError) as error:
                why = type(error).__name__
            if why:
                found.refused[f"{key}: {why}"] += 1
            else:
                answered.append(time.monotonic() - begun_s)
            await asyncio.sleep(VICTIM_EVERY_S)


async def measure(seconds: float, only: str, *, quick: bool, say: Say) -> Sequence[Figure]:
    """Attack in every way, and compare."""
    names = [one for one in (QUICK if quick else PAYLOADS) if only in f"generating: {one}"]
    found = await survive(names, seconds)
    slowest, slowest_s = max(found.waited_s.items(), key=lambda item: item[1], default=("", 0.0))
    for name, waited_s in found.waited_s.items():
        if waited_s > PROBE_WITHIN_S:
            say(f"generating, {name}: a probe waited {waited_s:.1f} s")
    for key, count in found.refused.items():
        say(f"generating, {key} ({count} requests of another client)")
    medians = {key: statistics.median(took) for key, took in found.answered.items() if took}
    worst, worst_s = max(medians.items(), key=lambda item: item[1], default=("", 0.0))
    served = sum(bool(took) for took in found.answered.values())
    asked = len(VICTIMS) * len(names)
    return (
        shown(f"attacks of {seconds:g} s", f"{len(found.waited_s)}"),
        at_most("kills for memory", found.kills, 0, "", 0),
        shown("most memory", f"{found.peak_bytes / MIB:.0f} of {LIMIT_BYTES / MIB:.0f} MiB"),
        at_most("refused requests of another client", sum(found.refused.values()), 0, "", 0),
        at_least("attacks in which its requests are answered", served, asked, "", 0),
        shown(f"its median answer at worst ({worst})", f"{worst_s:.2f} s"),
        at_most(f"slowest probe ({slowest})", slowest_s, PROBE_WITHIN_S, " s", 2),
    )
