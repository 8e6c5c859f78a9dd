"""The activator under attack, in a cgroup of the shipped size, with the operator's API here."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from bench.figures import Figure, at_least, at_most, shown
from free_ports import free_port
from headroom.adapters.gateways.activator_api import ActivatorApi
from headroom.gateway import Endpoint
from headroom.gateway.activator_messages import Served
from load.operator_tls import ACTIVATOR, issued
from reliability.attacks.held_clients import (
    ATTACKS,
    BODY_BYTES,
    answered,
    flood,
    silent_replica,
    until_open,
)
from reliability.attacks.processes import Probes, running
from reliability.testbed.memory_cgroup import MIB, MemoryCgroup, bytes_of, memory_cgroup

MANIFEST = Path(__file__).parents[3] / "deploy" / "components" / "gateway" / "activator.yaml"
ATTACK_S, QUICK_S = 20.0, 4.0
PROBE_WITHIN_S = 1.0
VICTIM = "victim/v"
Say = Callable[[str], None]


def limit_bytes() -> int:
    """Return the activator's memory limit as shipped."""
    for one in yaml.safe_load_all(MANIFEST.read_text()):
        if one["kind"] == "Deployment":
            (container,) = one["spec"]["template"]["spec"]["containers"]
            return bytes_of(container["resources"]["limits"]["memory"])
    raise LookupError(f"{MANIFEST} must have a Deployment")


QUICK = ("bodies", "heads", "requests")


@dataclass(slots=True)
class Outcome:
    """The outcome for the activator."""

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
        async with silent_replica() as (replica, accepted), _stage(cgroup, Path(folder)) as stage:
            hostile = [(f"hostile-{n}/h", free_port()) for n in range(4)]
            victim = free_port()
            for name in names:
                stage.activator_api.publish(
                    [_served(key, port) for key, port in hostile] + [_served(VICTIM, victim)]
                )
                await until_open([*(port for _, port in hostile), victim])
                probes = Probes("127.0.0.1", stage.port, "/livez", "/readyz")
                async with probes.during(), flood([port for _, port in hostile], name):
                    await asyncio.sleep(seconds / 2)
                    asked = asyncio.create_task(answered(victim))
                    # the victim's replica becomes warm, and those of the hostile ones, which
                    # accept connections and never read
                    await asyncio.sleep(0.5)
                    stage.activator_api.publish(
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
    activator_api: ActivatorApi
    process: asyncio.subprocess.Process
    port: int


@contextlib.asynccontextmanager
async def _stage(cgroup: MemoryCgroup, folder: Path) -> AsyncIterator[_Stage]:
    async def authenticate(_: str, __: str) -> bool:
        return True

    tls, named = issued(folder)
    activator_api = ActivatorApi(authenticate, hold_s=0.5, tls=tls, peer=ACTIVATOR)
    activator_api_port, port = free_port(), free_port()
    activator_api.publish([])
    token = folder / "token"
    token.write_text("token")
    serving = asyncio.create_task(activator_api.serve(activator_api_port, "127.0.0.1"))
    words = [
        "headroom",
        "activator",
        "--operator",
        f"https://127.0.0.1:{activator_api_port}",
        *named,
    ]
    words += ["--address", "127.0.0.1", "--token-file", str(token), "--port", str(port)]
    try:
        async with running(*words, prefix=cgroup.prefix) as process:
            await until_open([port])
            yield _Stage(activator_api, process, port)
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
