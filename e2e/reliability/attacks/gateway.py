"""The gateway under attack, in a memory cgroup of the shipped size, and the effect on others.

One service is attacked. Two victims send small requests meanwhile: another service, in another
namespace, and another tenant of the attacked service. Each attack is preceded by the same load
without it.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from bench.figures import Figure, shown
from bench.gateway.many_services import running_envoy
from bench.processes import Process
from bench.server.loading import send
from free_ports import free_port
from headroom.gateway import Endpoint, Route, snapshot
from headroom.gateway.runtime import in_flight_per_replica
from headroom.gateway.values import TenantLimit
from headroom.scaling.values.observation import CostModel
from reliability.attacks import hostile_client
from reliability.attacks.gateway_attacks import ATTACKS, QUICK
from reliability.attacks.gateway_verdict import Loads, Outcome
from reliability.attacks.processes import ELSEWHERE, running, until_ok
from reliability.testbed.memory_cgroup import MIB, MemoryCgroup, bytes_of, memory_cgroup

MANIFEST = Path(__file__).parents[3] / "deploy" / "components" / "gateway" / "gateway.yaml"
ATTACK_S, QUICK_S = 15.0, 4.0
SETTLE_S = 2.0
READY_WITHIN_S = 60.0
VICTIM_RPS = 40.0
LIMIT = TenantLimit(header="x-tenant", rate_rps=100, burst=100)
TAKES_S, BATCH, TARGET_S = 0.02, 64, 0.1
IN_FLIGHT = in_flight_per_replica(
    CostModel(fixed_s=TAKES_S, per_item_s=0.0, max_batch=BATCH), TARGET_S
)
"""Bound that the operator computes. Far fewer would bound the victims' own requests while a busy
machine answers late: they have half of them."""
QUIET_S = 3 * TAKES_S
"""A victim's p95 without an attack, above which the machine is too busy to compare."""
TRIES = 4
Say = Callable[[str], None]
REPLICAS = ("--fixed", str(TAKES_S), "--batch", str(BATCH))


def shipped_bytes() -> int:
    """Return the memory limit of the container `envoy`."""
    (envoy,) = (
        container
        for one in yaml.safe_load_all(MANIFEST.read_text())
        if one["kind"] == "Deployment"
        for container in one["spec"]["template"]["spec"]["containers"]
        if container["name"] == "envoy"
    )
    return bytes_of(envoy["resources"]["limits"]["memory"])


@dataclass(frozen=True, slots=True)
class Stage:
    """A gateway with two services, each with replicas of its own."""

    envoy: Process
    attacked: int
    """Port of the service that is attacked."""
    other: int


@asynccontextmanager
async def staged(cgroup: MemoryCgroup) -> AsyncIterator[Stage]:
    """Start it, and end it with the block."""
    routes = [_route("attacked", "model", tenants=LIMIT), _route("other", "model")]
    with _replicas() as first, _replicas() as second:
        async with running_envoy(cgroup.prefix) as (xds, envoy, _):
            ports = {routes[0].key: first, routes[1].key: second}
            hosts = {key: [Endpoint("127.0.0.1", port)] for key, port in ports.items()}
            xds.publish(snapshot(routes, hosts, dict.fromkeys(hosts, IN_FLIGHT)))
            for one in routes:
                await until_ok(f"http://127.0.0.1:{one.port}/", READY_WITHIN_S)
            yield Stage(envoy, routes[0].port, routes[1].port)


def _route(namespace: str, name: str, tenants: TenantLimit | None = None) -> Route:
    return Route(
        namespace=namespace,
        name=name,
        port=free_port(),
        timeout_s=60.0,
        per_try_timeout_s=None,
        max_body_bytes=16 * MIB,
        slow_start_s=None,
        grpc_port=None,
        max_upgrades=8,
        tenants=tenants,
        trusted_cidrs=("0.0.0.0/0",),  # all come from loopback, and name their tenants
    )


@contextmanager
def _replicas() -> Iterator[int]:
    port = free_port()
    words = [sys.executable, "-m", "bench.gateway.replicas", *REPLICAS, "--ports", str(port)]
    process = subprocess.Popen(words)
    try:
        yield port
    finally:
        process.kill()
        process.wait()


async def survive(names: Sequence[str], seconds: float, say: Say) -> Outcome:
    """Attack one gateway in every way that is named; stop when it is killed."""
    found = Outcome()
    with memory_cgroup(shipped_bytes()) as cgroup:
        async with staged(cgroup) as stage:
            for name in names:
                for _ in range(TRIES):
                    calm, attacked, after = await _compared(stage, name, seconds)
                    found.kills = cgroup.kills
                    if found.kills or _is_quiet(calm, after):
                        break
                    found.discarded += 1
                if found.kills:
                    break
                if _is_quiet(calm, after):
                    found.add(name, calm, attacked, after)
                else:
                    found.unjudged.append(name)
                    say(f"{name}: not judged: without it, others waited as well; end other load")
                found.peak_bytes = cgroup.peak_bytes(stage.envoy.pid)
    return found


async def _compared(stage: Stage, name: str, seconds: float) -> tuple[Loads, Loads, Loads]:
    """Return the victims' loads before, during and after an attack."""
    calm = await _loads(stage, seconds)
    words = [str(stage.attacked), *ATTACKS[name].words]
    async with running(hostile_client.__name__, *words, prefix=ELSEWHERE, read=True) as attacker:
        assert attacker.stdout is not None
        await attacker.stdout.readline()  # a busy machine takes seconds to start it
        await asyncio.sleep(SETTLE_S)
        attacked = await _loads(stage, seconds)
    await asyncio.sleep(SETTLE_S)
    return calm, attacked, await _loads(stage, seconds)


def _is_quiet(*calm: Loads) -> bool:
    """Return whether the machine had time for the victims without an attack."""
    return all(
        load.ok == load.requests and load.quantile_s(0.95) <= QUIET_S
        for loads in calm
        for load in loads.values()
    )


async def _loads(stage: Stage, seconds: float) -> Loads:
    """Send the loads of both victims, each over connections that they open now."""
    loads = await asyncio.gather(
        asyncio.to_thread(send, [stage.other], VICTIM_RPS, seconds, clients=8),
        asyncio.to_thread(send, [stage.attacked], VICTIM_RPS, seconds, clients=8, tenant="quiet"),
    )
    return dict(zip(("another service", "another tenant"), loads, strict=True))


async def measure(seconds: float, only: str, *, quick: bool, say: Say) -> Sequence[Figure]:
    """Attack in every way."""
    names = [one for one in (QUICK if quick else ATTACKS) if only in f"gateway: {one}"]
    found = await survive(names, seconds, say)
    for key, noticed in found.noticed.items():
        if not noticed.holds:
            say(f"{key}: {noticed.words()}")
    return [shown(f"attacks of {seconds:g} s", f"{len(names)}"), *found.figures()]
