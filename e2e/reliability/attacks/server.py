"""The model server under attack, with the settings and the memory limit of the sample.

Each kind of attack has its own clients, all at once; a kubelet's probes go on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from bench.figures import Figure, at_most, shown
from free_ports import free_port
from reliability.attacks import grpc_payloads
from reliability.attacks.payloads import MIB, PAYLOADS
from reliability.attacks.processes import ELSEWHERE, Probes, running, until_ok
from reliability.testbed.memory_cgroup import MemoryCgroup, bytes_of, memory_cgroup

SAMPLE = Path(__file__).parents[3] / "deploy" / "samples" / "demo.yaml"
LIVE, READY = "/v2/health/live", "/v2/health/ready"
CONNECTIONS = 200
PROBE_WITHIN_S = 1.0
READY_WITHIN_S = 60.0
ATTACK_S, QUICK_S = 20.0, 3.0
IMAGE_NUMBERS = 3 * 224 * 224
SAMPLE_NUMBERS = 4
ITEMS = 4
"""Items of the sample's batches."""
MODELS: Mapping[str, int] = {"sample": SAMPLE_NUMBERS, "images": IMAGE_NUMBERS}
QUICK = ("v1 numbers", "v1 lists", "unfinished", "unread pages", "gRPC raw", "gRPC unfinished")
Say = Callable[[str], None]


@dataclass(slots=True)
class Outcome:
    """The outcome for one server under all attacks."""

    kills: int = 0
    peak_bytes: int = 0
    waited_s: dict[str, float] = field(default_factory=dict)
    """The slowest probe by attack."""
    failures: dict[str, list[str]] = field(default_factory=dict)
    """Errors of probes that were not answered, by attack."""


def sample() -> tuple[dict[str, str], int]:
    """Return the environment and the memory limit of the sample."""
    runtime = yaml.safe_load(SAMPLE.read_text())["spec"]["runtime"]
    settings = {one["name"]: one["value"] for one in runtime["env"]}
    return settings, bytes_of(runtime["resources"]["limits"]["memory"])


@dataclass(frozen=True, slots=True)
class Target:
    """A server that runs."""

    port: int
    grpc_port: int
    pid: int


@asynccontextmanager
async def serving(
    cgroup: MemoryCgroup, settings: Mapping[str, str], elements: int
) -> AsyncIterator[Target]:
    """Run a server with both protocols until the block ends."""
    port, grpc_port = free_port(), free_port()
    own = {
        "HEADROOM_HOST": "0.0.0.0",
        "HEADROOM_PORT": str(port),
        "HEADROOM_GRPC_PORT": str(grpc_port),
        "HEADROOM_MODEL_NAME": "m",
        "HEADROOM_EMULATED_INPUT_SIZE": str(elements),
        "HEADROOM_EMULATED_LOAD_S": "0",
        "HEADROOM_WARMUP_REQUESTS": "1",
        "HEADROOM_WARMUP_MAX_LATENCY_S": "30",
    }
    async with running("headroom_server", prefix=cgroup.prefix, env={**settings, **own}) as process:
        await until_ok(f"http://127.0.0.1:{port}{READY}", READY_WITHIN_S)
        yield Target(port, grpc_port, process.pid)


async def survive(
    elements: int, names: Sequence[str], seconds: float, connections: int = CONNECTIONS
) -> Outcome:
    """Attack a server of the sample's size in every way that is named; stop when it is killed."""
    settings, limit_bytes = sample()
    found = Outcome()
    with memory_cgroup(limit_bytes) as cgroup:
        async with serving(cgroup, settings, elements) as target:
            for name in names:
                probes = await _attacked(target, name, elements, seconds, connections)
                found.waited_s[name] = max(probes.waited_s)
                found.failures[name] = probes.failures
                found.kills, found.peak_bytes = cgroup.kills_and_peak(target.pid, found.peak_bytes)
                if found.kills:
                    break
    return found


async def _attacked(
    target: Target, name: str, elements: int, seconds: float, connections: int
) -> Probes:
    """Return the probes of one attack."""
    port = target.port if name in PAYLOADS else target.grpc_port
    words = [name, "127.0.0.1", str(port), str(connections), str(elements), str(ITEMS)]
    probes = Probes("127.0.0.1", target.port, LIVE, READY)
    async with probes.during(), running("reliability.attacks.flood", *words, prefix=ELSEWHERE):
        await asyncio.sleep(seconds)
    return probes


async def measure(seconds: float, only: str, *, quick: bool, say: Say) -> Sequence[Figure]:
    """Attack a server of each model in every way."""
    names = [*PAYLOADS, *grpc_payloads.PAYLOADS]
    chosen = [one for one in (QUICK if quick else names) if only in f"server: {one}"]
    figures: list[Figure] = []
    for model, elements in MODELS.items():
        found = await survive(elements, chosen, seconds)
        slowest, slowest_s = max(found.waited_s.items(), key=lambda item: item[1], default=("", 0))
        for name, waited_s in found.waited_s.items():
            if waited_s > PROBE_WITHIN_S:
                say(f"{model}, {name}: a probe waited {waited_s:.1f} s {found.failures[name]}")
        figures += [
            shown(f"{model}: attacks of {seconds:g} s", f"{len(found.waited_s)}"),
            at_most(f"{model}: kills for memory", found.kills, 0, "", 0),
            shown(f"{model}: most memory", f"{found.peak_bytes / MIB:.0f} MiB"),
            at_most(f"{model}: slowest probe ({slowest})", slowest_s, PROBE_WITHIN_S, " s", 2),
        ]
    return figures
